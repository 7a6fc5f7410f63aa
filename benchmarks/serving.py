"""How many environment steps a second an RLX server answers, and how long a client waits.

    python benchmarks/serving.py
    python benchmarks/serving.py --connections 32 --environments 1 --shapes cartpole --workers auto

For each number of connections and of environments on each: steps a second, latency of a message
(50th and 99th percentile), and beside them the echo limit of the same run, which is what the same
clients reach with the same messages when a forked process for each connection answers at once,
without evaluating a network. Clients are the bundled ones, a process each, and share the machine
with the servers; all play for a second (--warm-up) before they are measured.

Learning is off (``learn: false``) unless ``--learn`` is given, and ``--least-rollouts`` says how
many rollouts an update waits for. Then two more columns show how many
steps a second were learnt from, and which part of the steps was dropped because learning did not
keep up. MiB is the memory of both servers with all that they started, shared pages counted once
(PSS). Version 1 of the protocol carries one environment on a connection. A cell is skipped, with
the reason, where there is not enough memory for it.

``--checkout`` runs the servers of another checkout of this project, with this one's clients:

    python benchmarks/serving.py --connections 32 --environments 1 --workers none \\
        --checkout ../old --server-option inference=batched
"""

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cells import SHAPES, Cell, Unmeasured
from clients import Figures, Window, connected_clients
from echo import echo_server
from launch import Launch, add_launch, add_workers, launch_of
from process_memory import mib_of
from processes import end_on_sigterm
from report import Results, add_json, parser_of
from servers import running_servers, temporary_directory
from steps import Reading, dropped_rollouts, global_step

#: With learning on: gradients are compiled when the first rollouts are full.
LEARNING_WARM_UP_S = 10.0

#: Steps of one rollout, DA3C's default.
EPISODE_LEN = 5


@dataclass(frozen=True)
class Learnt:
    """How learning kept up."""

    per_s: float
    #: The part of all steps.
    dropped: float


@dataclass(frozen=True)
class Row:
    """One line of the table; without figures where it was skipped."""

    cell: Cell
    served: Figures | None = None
    echo: Figures | None = None
    memory_mib: float | None = None
    #: None where learning is off.
    learnt: Learnt | None = None
    skipped: str | None = None


@dataclass(frozen=True)
class Measurement:
    """The algorithm's section, and seconds of play before and while it is measured."""

    section: dict[str, Any]
    warm_up_s: float
    measured_s: float


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    cells = list(all_cells(arguments))
    results = Results(arguments.json)
    print(f"{len(cells)} cells, {arguments.seconds:g} s each and as long for the echo\n")
    print(HEADINGS + (LEARNING_HEADINGS if arguments.learn else ""), flush=True)
    for cell in cells:
        try:
            require(cell, arguments)
            row = measure(cell, arguments)
        except Unmeasured as reason:
            row = Row(cell, skipped=str(reason))
        print(as_line(row), flush=True)
        results.add(row)
    results.close()


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--environments", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    add_workers(parser)
    parser.add_argument("--protocols", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    parser.add_argument("--seconds", type=float, default=4.0, help="for each figure (default 4)")
    parser.add_argument("--warm-up", type=float, help="seconds of play before each figure "
                        f"(default 1, with --learn {LEARNING_WARM_UP_S:g})")  # fmt: skip
    parser.add_argument("--learn", action="store_true", help="with learning on")
    parser.add_argument("--least-rollouts", type=int, default=1, metavar="N",
                        help="with --learn, least_rollouts_per_update (default 1)")  # fmt: skip
    parser.add_argument("--most-environments", type=int, metavar="N",
                        help="skip cells with more environments in all")  # fmt: skip
    add_launch(parser)
    add_json(parser, "serving")
    return parser.parse_args()


def all_cells(arguments: argparse.Namespace) -> Iterator[Cell]:
    for values in itertools.product(
        arguments.shapes,
        arguments.workers,
        arguments.protocols,
        arguments.connections,
        arguments.environments,
    ):
        cell = Cell(*values)
        if cell.protocol > 1 or cell.environments == 1:
            yield cell


def require(cell: Cell, arguments: argparse.Namespace) -> None:
    """Raise Unmeasured with the reason if ``cell`` is not to be measured here."""
    most = arguments.most_environments
    if most is not None and cell.connections * cell.environments > most:
        raise Unmeasured(f"more than --most-environments {most}")
    cell.require(cell.connections, arguments.most_workers)


def measure(cell: Cell, arguments: argparse.Namespace) -> Row:
    warm_up = arguments.warm_up
    if warm_up is None:
        warm_up = LEARNING_WARM_UP_S if arguments.learn else 1.0
    echo = measure_echo(cell, min(warm_up, 1.0), arguments.seconds)
    launch = launch_of(arguments, cell.workers)
    measurement = Measurement(section_of(cell, arguments), warm_up, arguments.seconds)
    with temporary_directory() as name:
        if arguments.learn:
            return measure_learning(cell, measurement, echo, Path(name), launch)
        return measure_acting(cell, measurement, echo, Path(name), launch)


def section_of(cell: Cell, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the configuration of the algorithm."""
    section = {**cell.section, "seed": 1}
    if not arguments.learn:
        return {**section, "learn": False}
    section["episode_len"] = EPISODE_LEN
    if arguments.least_rollouts != 1:  # older checkouts have no such key
        section["least_rollouts_per_update"] = arguments.least_rollouts
    return section


def measure_echo(cell: Cell, warm_up: float, seconds: float) -> Figures:
    with echo_server(cell) as url, connected_clients(url, cell) as clients:
        window = Window.after(warm_up, seconds)
        clients.play(window)
        return clients.figures(window)


def measure_acting(
    cell: Cell, measurement: Measurement, echo: Figures, directory: Path, launch: Launch
) -> Row:
    with (
        running_servers(directory, measurement.section, launch) as servers,
        connected_clients(servers.rlx_server_url, cell) as clients,
    ):
        window = Window.after(measurement.warm_up_s, measurement.measured_s)
        clients.play(window)
        return Row(cell, clients.figures(window), echo, mib_of(servers))


def measure_learning(
    cell: Cell, measurement: Measurement, echo: Figures, directory: Path, launch: Launch
) -> Row:
    metrics = directory / "metrics"
    with (
        running_servers(
            directory, measurement.section, launch, {"metrics-dir": str(metrics)}
        ) as servers,
        global_step(servers.parameter_server_url) as step,
        connected_clients(servers.rlx_server_url, cell) as clients,
    ):
        window = Window.after(measurement.warm_up_s, measurement.measured_s)
        clients.play(window)
        window.wait_for_begin()
        before = step.now()
        window.wait_for_end()
        after = step.now()
        served, memory = clients.figures(window), mib_of(servers)
    return Row(cell, served, echo, memory, learnt_between(before, after, metrics))


def learnt_between(before: Reading, after: Reading, metrics: Path) -> Learnt:
    """Return what was learnt from; the global step counts dropped steps too."""
    steps = after.steps - before.steps
    dropped = dropped_rollouts(metrics, before.wall_s, after.wall_s) * EPISODE_LEN
    return Learnt(
        per_s=(steps - dropped) / (after.at_s - before.at_s), dropped=dropped / max(steps, 1)
    )


HEADINGS = (
    f"{'shape':<9}{'workers':<11}{'RLX':>3}{'conn':>6}{'envs':>6}{'steps/s':>10}{'p50 ms':>9}"
    f"{'p99 ms':>9}{'echo/s':>10}{'p99 ms':>9}{'of echo':>9}{'MiB':>7}"
)
LEARNING_HEADINGS = f"{'learnt/s':>10}{'dropped':>9}"


def as_line(row: Row) -> str:
    cell, served, echo, learnt = row.cell, row.served, row.echo, row.learnt
    line = (
        f"{cell.shape:<9}{cell.workers:<11}{cell.protocol:>3}{cell.connections:>6}"
        f"{cell.environments:>6}"
    )
    if served is None or echo is None:
        return f"{line}  skipped: {row.skipped}"
    line += (
        f"{served.steps_per_s:>10,.0f}{served.p50_ms:>9.2f}"
        f"{served.p99_ms:>9.2f}{echo.steps_per_s:>10,.0f}{echo.p99_ms:>9.2f}"
        f"{served.steps_per_s / echo.steps_per_s:>9.0%}{row.memory_mib:>7,.0f}"
    )
    return line if learnt is None else f"{line}{learnt.per_s:>10,.0f}{learnt.dropped:>9.0%}"


if __name__ == "__main__":
    main()

"""How many environment steps a second an RLX server answers, and how long a client waits.

    python benchmarks/serving.py
    python benchmarks/serving.py --connections 32 --environments 1 --shapes cartpole --modes batched

For each number of connections and of environments on each: steps a second, latency of a message
(50th and 99th percentile), and beside them the echo limit of the same run, which is what the same
clients reach with the same messages when a forked process a connection answers at once, without
evaluating a network. Clients are the bundled ones, a process each, and share the machine with the
servers; all play for a second (--warm-up) before they are measured.

Learning is off (``learn: false``) unless ``--learn`` is given; then two columns more say how many
steps a second were learnt from, and which part of the steps was dropped because learning did not
keep up. MiB is the memory of both servers with all that they started, shared pages counted once
(PSS). Version 1 of the protocol carries one environment on a connection. A cell is skipped, with
the reason, where there is not enough memory for it.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cells import MODES, SHAPES, Cell, Unmeasured
from clients import Figures, Window, connected_clients
from echo import echo_server
from processes import end_on_sigterm
from report import Results, add_json, parser_of
from servers import MIB, everybody, memory_of, running_servers, temporary_directory
from steps import Reading, dropped_rollouts, global_step

#: With learning on: gradients are compiled when the first rollouts are full.
LEARNING_WARM_UP_S = 10.0

#: DA3C's rollouts, where the configuration does not say otherwise.
EPISODE_LEN = 5


@dataclass(frozen=True)
class Learnt:
    """How learning kept up."""

    per_s: float
    #: Steps that nobody learnt from, of all.
    dropped: float


@dataclass(frozen=True)
class Row:
    """One line of the table; without figures where it was skipped."""

    cell: Cell
    served: Figures | None = None
    echo: Figures | None = None
    memory_mib: float | None = None
    #: None where nobody learns.
    learnt: Learnt | None = None
    skipped: str | None = None


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    cells = list(all_cells(arguments))
    results = Results(arguments.json)
    print(f"{len(cells)} cells, {arguments.seconds:g} s each and as long for the echo\n")
    print(HEADINGS + (LEARNING_HEADINGS if arguments.learn else ""), flush=True)
    for cell in cells:
        try:
            leave_out(cell, arguments)
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
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--protocols", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    parser.add_argument("--seconds", type=float, default=4.0, help="for each figure (default 4)")
    parser.add_argument("--warm-up", type=float, help="seconds of play before each figure "
                        f"(default 1, with --learn {LEARNING_WARM_UP_S:g})")  # fmt: skip
    parser.add_argument("--learn", action="store_true", help="with learning on")
    parser.add_argument("--most-inline", type=int, default=sys.maxsize, metavar="CONNECTIONS",
                        help="leave out inline cells with more; each starts a worker, which takes "
                        "a second or two of a core")  # fmt: skip
    parser.add_argument("--most-environments", type=int, default=sys.maxsize, metavar="N",
                        help="leave out cells with more environments in all")  # fmt: skip
    add_json(parser, "serving")
    return parser.parse_args()


def all_cells(arguments: argparse.Namespace) -> Iterator[Cell]:
    for values in itertools.product(
        arguments.shapes,
        arguments.modes,
        arguments.protocols,
        arguments.connections,
        arguments.environments,
    ):
        cell = Cell(*values)
        if cell.protocol > 1 or cell.environments == 1:
            yield cell


def leave_out(cell: Cell, arguments: argparse.Namespace) -> None:
    """Raise Unmeasured with the reason when ``cell`` is not to be measured here."""
    if cell.mode == "inline" and cell.connections > arguments.most_inline:
        raise Unmeasured(f"more than --most-inline {arguments.most_inline}")
    if cell.connections * cell.environments > arguments.most_environments:
        raise Unmeasured(f"more than --most-environments {arguments.most_environments}")
    cell.require_memory()


def measure(cell: Cell, arguments: argparse.Namespace) -> Row:
    warm_up = arguments.warm_up
    if warm_up is None:
        warm_up = LEARNING_WARM_UP_S if arguments.learn else 1.0
    with echo_server(cell) as url, connected_clients(url, cell) as clients:
        window = Window.after(min(warm_up, 1.0), arguments.seconds)
        clients.play(window)
        echo = clients.figures(window)
    with temporary_directory() as name:
        directory = Path(name)
        if arguments.learn:
            return measure_learning(cell, echo, directory, warm_up, arguments.seconds)
        section = {**cell.section, "learn": False, "seed": 1}
        with (
            running_servers(directory, section, cell.mode) as servers,
            connected_clients(servers.rlx_server_url, cell) as clients,
        ):
            window = Window.after(warm_up, arguments.seconds)
            clients.play(window)
            served = clients.figures(window)
            memory = memory_of(everybody(servers)).proportional / MIB
    return Row(cell, served, echo, memory)


def measure_learning(
    cell: Cell, echo: Figures, directory: Path, warm_up: float, seconds: float
) -> Row:
    section = {**cell.section, "episode_len": EPISODE_LEN, "seed": 1}
    metrics = directory / "metrics"
    with (
        running_servers(directory, section, cell.mode, {"metrics-dir": str(metrics)}) as servers,
        global_step(servers.parameter_server_url) as step,
        connected_clients(servers.rlx_server_url, cell) as clients,
    ):
        window = Window.after(warm_up, seconds)
        clients.play(window)
        window.wait_for_begin()
        before = step.now()
        window.wait_for_end()
        after = step.now()
        served = clients.figures(window)
        memory = memory_of(everybody(servers)).proportional / MIB
    return Row(cell, served, echo, memory, learnt_between(before, after, metrics))


def learnt_between(before: Reading, after: Reading, metrics: Path) -> Learnt:
    """The global step counts dropped steps too."""
    steps = after.steps - before.steps
    dropped = dropped_rollouts(metrics, before.wall_s, after.wall_s) * EPISODE_LEN
    return Learnt(
        per_s=(steps - dropped) / (after.at_s - before.at_s), dropped=dropped / max(steps, 1)
    )


HEADINGS = (
    f"{'shape':<9}{'mode':<9}{'RLX':>3}{'conn':>6}{'envs':>6}{'steps/s':>10}{'p50 ms':>9}"
    f"{'p99 ms':>9}{'echo/s':>10}{'p99 ms':>9}{'of echo':>9}{'MiB':>7}"
)
LEARNING_HEADINGS = f"{'learnt/s':>10}{'dropped':>9}"


def as_line(row: Row) -> str:
    cell, served, echo, learnt = row.cell, row.served, row.echo, row.learnt
    line = (
        f"{cell.shape:<9}{cell.mode:<9}{cell.protocol:>3}{cell.connections:>6}"
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

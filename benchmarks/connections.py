"""How fast an RLX server admits 1,000 connections, and how it answers them.

    python benchmarks/connections.py
    python benchmarks/connections.py --workers auto --connections 1000 --rate 10 --learn

All clients, with one environment each, connect at the same moment. ``admitted`` is the time until
the last of them has its first action; ``refused`` counts the clients without a first action. Then
each client offers ``--rate`` steps a second, evenly spread in time. ``offered`` is the rate of all
clients together, ``steps/s`` is the rate of the answers. Latency (50th and 99th percentile) begins
when a step is due, even if the client still waits for the action before it, and ends when the
answer comes. ``lost`` counts connections that were closed after their first action. MiB is the
memory of both servers with all that they started, shared pages counted once (PSS). The clients run
in a few processes, which take little of the machine (see offered_load.py).

Learning is off (``learn: false``) unless ``--learn`` is given. ``--checkout`` runs the servers of
another checkout of this project:

    python benchmarks/connections.py --workers none --checkout ../old \\
        --server-option inference=batched
"""

import argparse
import itertools
from dataclasses import dataclass
from pathlib import Path

from cells import SHAPES, Cell, Unmeasured
from clients import Figures, Window
from launch import AUTO, Launch, add_launch, add_workers, launch_of
from offered_load import ORDER_S, figures_within, offered_load
from process_memory import mib_of
from processes import allow_many_files, end_on_sigterm
from report import Results, add_json, parser_of
from servers import running_servers, temporary_directory


@dataclass(frozen=True)
class Row:
    """One line of the table; without figures where it was skipped."""

    cell: Cell
    learns: bool
    admitted_s: float | None = None
    refused: int = 0
    #: Steps a second.
    offered: float = 0.0
    answered: Figures | None = None
    lost: int = 0
    memory_mib: float | None = None
    #: Why a connection was refused or lost, or the row was skipped.
    reason: str | None = None


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    allow_many_files()
    results = Results(arguments.json)
    print(HEADINGS, flush=True)
    for shape, workers, connections in itertools.product(
        arguments.shapes, arguments.workers, arguments.connections
    ):
        cell = Cell(shape, workers, protocol=2, connections=connections, environments=1)
        try:
            cell.require(arguments.processes, arguments.most_workers)
            row = measure(cell, launch_of(arguments, workers), arguments)
        except Unmeasured as reason:
            row = Row(cell, arguments.learn, reason=str(reason))
        print(as_line(row), flush=True)
        results.add(row)
    results.close()


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--connections", type=int, nargs="+", default=[1000], help="default 1000")
    parser.add_argument("--rate", type=float, default=10.0,
                        help="steps a second that each connection offers (default 10)")  # fmt: skip
    parser.add_argument("--processes", type=int, default=2, help="of clients (default 2)")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["cartpole"])
    add_workers(parser, default=(AUTO,))
    parser.add_argument("--seconds", type=float, default=10.0, help="of measuring (default 10)")
    parser.add_argument("--warm-up", type=float, default=10.0,
                        help="seconds of play before (default 10)")  # fmt: skip
    parser.add_argument("--learn", action="store_true", help="with learning on")
    add_launch(parser)
    add_json(parser, "connections")
    return parser.parse_args()


def measure(cell: Cell, launch: Launch, arguments: argparse.Namespace) -> Row:
    section = {**cell.section, "seed": 1, **({} if arguments.learn else {"learn": False})}
    with (
        temporary_directory() as name,
        running_servers(Path(name), section, launch) as servers,
        offered_load(servers.rlx_server_url, cell, arguments.processes) as load,
    ):
        window = Window.after(arguments.warm_up + ORDER_S, arguments.seconds)
        load.play(window.end, arguments.rate)
        played = load.played()
        return Row(
            cell,
            arguments.learn,
            admitted_s=load.admitted_s,
            refused=cell.connections - load.admitted,
            offered=load.admitted * arguments.rate,
            answered=figures_within(played, window),
            lost=played.lost,
            memory_mib=mib_of(servers),
            reason=load.refusal or played.reason,
        )


HEADINGS = (
    f"{'shape':<9}{'workers':<11}{'conn':>6}{'learn':>6}{'admitted s':>12}{'refused':>8}"
    f"{'offered':>9}{'steps/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'lost':>6}{'MiB':>8}"
)


def as_line(row: Row) -> str:
    cell, answered = row.cell, row.answered
    learns = "yes" if row.learns else "no"
    line = f"{cell.shape:<9}{cell.workers:<11}{cell.connections:>6}{learns:>6}"
    if answered is None:
        return f"{line}  skipped: {row.reason}"
    line += (
        f"{row.admitted_s:>12.2f}{row.refused:>8}{row.offered:>9,.0f}{answered.steps_per_s:>9,.0f}"
        f"{answered.p50_ms:>9.2f}{answered.p99_ms:>9.2f}{row.lost:>6}{row.memory_mib:>8,.0f}"
    )
    return f"{line}  {row.reason}" if row.reason else line


if __name__ == "__main__":
    main()

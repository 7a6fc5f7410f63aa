"""What the servers' processes own, at 1, 32 and 128 connections.

    python benchmarks/memory.py
    python benchmarks/memory.py --shapes atari --workers auto --connections 128

Each client plays with the bundled client, learning included, for some seconds before the memory is
read while it goes on, so that rollouts and gradients have happened. For each kind of process, in
MiB: ``res`` is resident memory, which counts pages that processes share for each of them; ``own``
is private memory (USS), what would be free again if the process ended. ``n`` is the number of
workers that serve a connection, and their two figures are means; ``a conn`` is what they own
together, divided by the number of connections. ``all`` is everything together, with shared pages
counted once (PSS): the parameter server, the RLX server and all that they started. A row is
skipped, with the reason, where there is not enough memory for it.
"""

import argparse
import itertools
from dataclasses import dataclass
from pathlib import Path

import psutil
from cells import SHAPES, Cell, Unmeasured
from clients import Window, connected_clients
from launch import Launch, Workers, add_launch, add_workers, launch_of
from process_memory import MIB, family_of, memory_of, mib_of
from processes import end_on_sigterm
from report import Results, add_json, parser_of
from servers import Servers, running_servers, temporary_directory

#: Clients play until they are killed.
LONG_S = 24 * 3600.0


@dataclass(frozen=True)
class Owned:
    """Memory of a process, or the mean of several; MiB."""

    resident: float
    private: float


@dataclass(frozen=True)
class Row:
    """One line of the table; without figures where it was skipped."""

    shape: str
    workers: Workers
    connections: int
    parameter_server: Owned | None = None
    rlx_server: Owned | None = None
    #: Those that serve a connection.
    worker_count: int = 0
    worker: Owned | None = None
    all_mib: float | None = None
    skipped: str | None = None


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    results = Results(arguments.json)
    print(f"{GROUPS}\n{HEADINGS}", flush=True)
    for shape, workers, connections in itertools.product(
        arguments.shapes, arguments.workers, arguments.connections
    ):
        cell = Cell(shape, workers, protocol=2, connections=connections, environments=1)
        try:
            cell.require(connections, arguments.most_workers)
            row = measure(cell, launch_of(arguments, workers), arguments.seconds)
        except Unmeasured as reason:
            row = Row(shape, workers, connections, skipped=str(reason))
        print(as_line(row), flush=True)
        results.add(row)
    results.close()


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    add_workers(parser)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 32, 128])
    parser.add_argument("--seconds", type=float, default=10.0, help="of play (default 10)")
    add_launch(parser)
    add_json(parser, "memory")
    return parser.parse_args()


def measure(cell: Cell, launch: Launch, seconds: float) -> Row:
    with (
        temporary_directory() as name,
        running_servers(Path(name), {**cell.section, "seed": 1}, launch) as servers,
        connected_clients(servers.rlx_server_url, cell) as clients,
    ):
        window = Window.after(seconds, LONG_S)
        clients.play(window)
        window.wait_for_begin()
        return row_of(servers, cell)


def row_of(servers: Servers, cell: Cell) -> Row:
    parent, *children = family_of(servers.rlx_server)
    ports = {c.laddr.port for c in parent.net_connections("tcp") if c.status == "LISTEN"}
    workers = [child for child in children if serves_a_client(child, ports)]
    return Row(
        cell.shape,
        cell.workers,
        cell.connections,
        parameter_server=owned([psutil.Process(servers.parameter_server.pid)]),
        rlx_server=owned([parent]),
        worker_count=len(workers),
        worker=owned(workers),
        all_mib=mib_of(servers),
    )


def serves_a_client(process: psutil.Process, ports: set[int]) -> bool:
    """Return whether a process holds the server's end of a connection to one of ``ports``."""
    return any(c.laddr.port in ports for c in process.net_connections("tcp"))


def owned(processes: list[psutil.Process]) -> Owned:
    memory = memory_of(processes)
    return Owned(memory.resident / MIB, memory.private / MIB)


GROUPS = f"{'':<25}{'parameter server':>18}{'RLX server':>18}{'workers':>32}"
HEADINGS = (
    f"{'shape':<9}{'workers':<11}{'conn':>5}"
    + f"{'res':>10}{'own':>8}" * 2
    + f"{'n':>6}{'res':>10}{'own':>8}{'a conn':>8}{'all':>9}   MiB"
)


def as_line(row: Row) -> str:
    line = f"{row.shape:<9}{row.workers:<11}{row.connections:>5}"
    if row.all_mib is None or row.worker is None:
        return f"{line}  skipped: {row.skipped}"
    each_mib = row.worker.private * row.worker_count / row.connections
    return (
        f"{line}{columns(row.parameter_server)}{columns(row.rlx_server)}{row.worker_count:>6}"
        f"{columns(row.worker)}{each_mib:>8.1f}{row.all_mib:>9,.0f}"
    )


def columns(each: Owned | None) -> str:
    return "" if each is None else f"{each.resident:>10.1f}{each.private:>8.1f}"


if __name__ == "__main__":
    main()

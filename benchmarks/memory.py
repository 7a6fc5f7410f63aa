"""What the servers' processes own, at 1, 32 and 128 connections.

    python benchmarks/memory.py
    python benchmarks/memory.py --shapes atari --modes batched --connections 128

Each client plays with the bundled client, learning included, for some seconds before the memory is
read while it goes on, so that rollouts and gradients have happened. For each kind of process, in
MiB: ``res`` is resident memory, which counts pages that processes share for each of them; ``own``
is private memory (USS), what would be free again if the process ended. For workers, of which each
connection has one, both are means. ``all`` is everything together, with shared pages counted once
(PSS): the parameter server, the RLX server and all that they started. A row is skipped, with the
reason, where there is not enough memory for it.
"""

import argparse
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil
from cells import MODES, SHAPES, Cell, Unmeasured
from clients import Window, connected_clients
from processes import end_on_sigterm
from report import Results, add_json, parser_of
from servers import (
    MIB,
    Servers,
    everybody,
    family_of,
    memory_of,
    running_servers,
    temporary_directory,
)

#: Clients play until they are ended.
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
    mode: str
    connections: int
    parameter_server: Owned | None = None
    rlx_server: Owned | None = None
    #: None where every worker computes for itself.
    compute: Owned | None = None
    worker: Owned | None = None
    all_mib: float | None = None
    skipped: str | None = None


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    results = Results(arguments.json)
    print(f"{GROUPS}\n{HEADINGS}", flush=True)
    for shape, mode, connections in itertools.product(
        arguments.shapes, arguments.modes, arguments.connections
    ):
        cell = Cell(shape, mode, protocol=2, connections=connections, environments=1)
        try:
            if mode == "inline" and connections > arguments.most_inline:
                raise Unmeasured(f"more than --most-inline {arguments.most_inline}")
            cell.require_memory()
            row = measure(cell, arguments.seconds)
        except Unmeasured as reason:
            row = Row(shape, mode, connections, skipped=str(reason))
        print(as_line(row), flush=True)
        results.add(row)
    results.close()


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 32, 128])
    parser.add_argument("--most-inline", type=int, default=sys.maxsize, metavar="CONNECTIONS",
                        help="leave out inline rows with more; each starts a worker, which takes a "
                        "second or two of a core")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=10.0, help="of play (default 10)")
    add_json(parser, "memory")
    return parser.parse_args()


def measure(cell: Cell, seconds: float) -> Row:
    with (
        temporary_directory() as name,
        running_servers(Path(name), {**cell.section, "seed": 1}, cell.mode) as servers,
        connected_clients(servers.rlx_server_url, cell) as clients,
    ):
        window = Window.after(seconds, LONG_S)
        clients.play(window)
        window.wait_for_begin()
        return row_of(servers, cell)


def row_of(servers: Servers, cell: Cell) -> Row:
    parent, *children = family_of(servers.rlx_server)
    workers = [child for child in children if serves_a_client(child)]
    others = [child for child in children if child not in workers]
    compute = max(others, key=lambda child: child.memory_info().rss)
    return Row(
        cell.shape,
        cell.mode,
        cell.connections,
        parameter_server=owned([psutil.Process(servers.parameter_server.pid)]),
        rlx_server=owned([parent]),
        compute=owned([compute]) if cell.mode == "batched" else None,
        worker=owned(workers),
        all_mib=memory_of(everybody(servers)).proportional / MIB,
    )


def serves_a_client(process: psutil.Process) -> bool:
    """Return whether a process holds the server's end of a connection that clients made."""
    parent = process.parent()
    ports = {c.laddr.port for c in parent.net_connections("tcp") if c.status == "LISTEN"}
    return any(c.laddr.port in ports for c in process.net_connections("tcp"))


def owned(processes: list[psutil.Process]) -> Owned:
    memory = memory_of(processes)
    return Owned(memory.resident / MIB, memory.private / MIB)


GROUPS = f"{'':<23}" + "".join(
    f"{name:>18}" for name in ("parameter server", "RLX server", "compute process", "a worker")
)
HEADINGS = (
    f"{'shape':<9}{'mode':<9}{'conn':>5}" + f"{'res':>10}{'own':>8}" * 4 + f"{'all':>9}   MiB"
)


def as_line(row: Row) -> str:
    line = f"{row.shape:<9}{row.mode:<9}{row.connections:>5}"
    if row.all_mib is None:
        return f"{line}  skipped: {row.skipped}"
    for each in (row.parameter_server, row.rlx_server, row.compute, row.worker):
        line += f"{'-':>10}{'-':>8}" if each is None else columns(each)
    return f"{line}{row.all_mib:>9,.0f}"


def columns(each: Owned) -> str:
    return f"{each.resident:>10.1f}{each.private:>8.1f}"


if __name__ == "__main__":
    main()

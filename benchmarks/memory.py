"""What the servers' processes own, at 1, 32 and 128 connections.

    python benchmarks/memory.py
    python benchmarks/memory.py --shapes atari --modes batched --connections 128

Each client plays with the bundled client, learning included, for some seconds before the memory is
read, so that rollouts and gradients have happened. ``own`` is private memory (USS): what would be
free again if the process ended; for workers the mean. ``all`` is everything that the RLX server
started, with shared pages counted once (PSS). ``resident`` counts shared pages for each process.
"""

import argparse
import contextlib
import itertools
import json
import multiprocessing
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from servers import MIB, Memory, Servers, family_of, memory_of, running_servers
from serving import SHAPES

from relaax.client import Client

DEFAULT_JSON = Path(__file__).parent / "results" / "memory.json"


@dataclass(frozen=True)
class Row:
    """One line of the table; MiB."""

    shape: str
    mode: str
    connections: int
    parameter_server_own: float
    rlx_server_own: float
    compute_own: float | None
    worker_own: float
    worker_resident: float
    all_together: float


def main() -> None:
    arguments = parse()
    print(HEADINGS)
    rows = []
    for shape, mode, connections in itertools.product(
        arguments.shapes, arguments.modes, arguments.connections
    ):
        if mode == "inline" and connections > arguments.most_inline:
            continue
        rows.append(measure(shape, mode, connections, arguments.seconds))
        print(as_line(rows[-1]), flush=True)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))
    print(f"\nwritten to {arguments.json}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--modes", nargs="+", choices=("inline", "batched"),
                        default=["inline", "batched"])  # fmt: skip
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 32, 128])
    parser.add_argument("--most-inline", type=int, default=32, help="inline workers take a second "
                        "of a core each to start (default 32)")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=10.0, help="of play (default 10)")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON, help="default %(default)s")
    return parser.parse_args()


def measure(shape: str, mode: str, connections: int, seconds: float) -> Row:
    algorithm, observation = SHAPES[shape]
    with (
        running_servers({**algorithm, "seed": 1}, mode) as servers,
        playing(servers.rlx_server_url, observation, connections),
    ):
        time.sleep(seconds)
        return row_of(servers, shape, mode, connections)


@contextlib.contextmanager
def playing(url: str, observation: Any, connections: int) -> Any:
    """Let clients play; return when every one of them has got an action."""
    context = multiprocessing.get_context("fork")
    connected = context.Semaphore(0)
    clients = [
        context.Process(target=play, args=(url, observation, connected), daemon=True)
        for _ in range(connections)
    ]
    for client in clients:
        client.start()
    try:
        for _ in clients:
            if not connected.acquire(timeout=300):
                raise RuntimeError(f"a client got no action from {url}")
        yield
    finally:
        for client in clients:
            client.kill()
            client.join()


def play(url: str, observation: Any, connected: Any) -> None:
    with Client(url) as client:
        client.init(observation)
        connected.release()
        while True:
            client.send(1.0, observation)


def row_of(servers: Servers, shape: str, mode: str, connections: int) -> Row:
    parent, *children = family_of(servers.rlx_server)
    workers = [child for child in children if serves_a_client(child)]
    others = [child for child in children if child not in workers]
    compute = max(others, key=lambda child: child.memory_info().rss)
    worker = memory_of(workers)
    return Row(
        shape,
        mode,
        connections,
        own(memory_of([psutil.Process(servers.parameter_server.pid)])),
        own(memory_of([parent])),
        own(memory_of([compute])) if mode == "batched" else None,
        own(worker),
        worker.resident / len(workers) / MIB,
        memory_of([parent, *children]).proportional / MIB,
    )


def serves_a_client(process: psutil.Process) -> bool:
    """Return whether a process holds the server's end of a connection that clients made."""
    parent = process.parent()
    ports = {c.laddr.port for c in parent.net_connections("tcp") if c.status == "LISTEN"}
    return any(c.laddr.port in ports for c in process.net_connections("tcp"))


def own(memory: Memory) -> float:
    return memory.private / MIB


HEADINGS = (
    f"{'shape':<9}{'mode':<9}{'conn':>5}{'ps own':>9}{'rlx own':>9}{'compute':>9}"
    f"{'worker own':>12}{'resident':>10}{'all (PSS)':>11}   MiB"
)


def as_line(row: Row) -> str:
    compute = "-" if row.compute_own is None else f"{row.compute_own:.0f}"
    return (
        f"{row.shape:<9}{row.mode:<9}{row.connections:>5}{row.parameter_server_own:>9.0f}"
        f"{row.rlx_server_own:>9.1f}{compute:>9}{row.worker_own:>12.1f}"
        f"{row.worker_resident:>10.0f}{row.all_together:>11,.0f}"
    )


if __name__ == "__main__":
    main()

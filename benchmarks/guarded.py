"""What TLS and tokens cost those who play.

    python benchmarks/guarded.py

Two parameter servers and two RLX servers run: one pair is open, the other one is guarded with the
files of relaax-certificates, by TLS in both directions and a token. The same is measured at both in
turn, in short windows, so that the machine is alike for them:

    connect   from nothing to the first action on a new connection, in milliseconds
    steps     of one environment, of 64 on a connection, and of 64 with observations of 28 KB,
              in a second

Of each the median window counts; the last column is guarded / open.
"""

import argparse
import contextlib
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from launch import AUTO, add_launch, add_workers, launch_of
from report import Results, add_json, figure, parser_of
from servers import COMMANDS, Servers, running_servers, temporary_directory

from relaax.client import ClientAccess, TcpTransport, TlsFiles, VectorClient

#: Numbers of an observation, environments on the connection.
SHAPES = ((4, 1), (4, 64), (7056, 64))

#: Connections in a window.
CONNECTIONS = 20

_DEADLINE_S = 60.0


@dataclass(frozen=True)
class Row:
    """One figure without and with guards."""

    what: str
    open: float
    guarded: float
    #: guarded / open
    times: float


@dataclass(frozen=True)
class Side:
    """A pair of servers, and how one connects to it."""

    servers: Servers
    transport: TcpTransport

    def client(self, environments: int) -> VectorClient:
        """Return a client that has not connected yet."""
        return VectorClient(
            self.servers.rlx_server_url, environments, timeout_s=60, transport=self.transport
        )


def main() -> None:
    arguments = parse()
    results = Results(arguments.json)
    print(f"{'':<34}{'open':>12}{'guarded':>12}{'times':>8}", flush=True)
    for numbers, environments in SHAPES:
        with temporary_directory() as name, sides(Path(name), numbers, arguments) as both:
            for row in measure(both, numbers, environments, arguments):
                times = f"{row.times:>8.2f}"
                print(f"{row.what:<34}{figure(row.open):>12}{figure(row.guarded):>12}{times}")
                results.add(row)
    results.close()


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--windows", type=int, default=9, help="of each side (default 9)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a window (default 1)")
    add_workers(parser, default=(AUTO,))
    add_launch(parser)
    add_json(parser, "guarded")
    return parser.parse_args()


@contextlib.contextmanager
def sides(directory: Path, numbers: int, arguments: argparse.Namespace) -> Iterator[list[Side]]:
    """Run both pairs of servers: the open one, and the guarded one."""
    folder = directory / "secrets"
    make = [COMMANDS / "relaax-certificates", folder]
    subprocess.run(make, check=True, capture_output=True, timeout=_DEADLINE_S)  # noqa: S603
    guards = {
        "auth-token-file": f"{folder / 'tokens'}",
        "tls-cert": f"{folder / 'server.crt'}",
        "tls-key": f"{folder / 'server.key'}",
        "tls-ca": f"{folder / 'ca.crt'}",
    }
    own = TlsFiles(*(folder / file for file in ("environment.crt", "environment.key", "ca.crt")))
    shown = ClientAccess(token_file=folder / "environment.token", tls=own)
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(side(directory / name, numbers, arguments, options, access))
            for name, options, access in (("open", {}, ClientAccess()), ("guarded", guards, shown))
        ]


@contextlib.contextmanager
def side(
    directory: Path,
    numbers: int,
    arguments: argparse.Namespace,
    options: dict[str, Any],
    access: ClientAccess,
) -> Iterator[Side]:
    """Run servers with these options, for observations of so many numbers."""
    directory.mkdir()
    launch = launch_of(arguments, arguments.workers[0])
    launch.options.update(options)
    section = {
        "action_size": 2, "state_size": [numbers], "hidden_layers": [8], "learn": False, "seed": 1
    }  # fmt: skip
    with running_servers(directory, section, launch, options) as servers:
        yield Side(servers, TcpTransport(access))


def measure(
    both: Sequence[Side], numbers: int, environments: int, arguments: argparse.Namespace
) -> Iterator[Row]:
    """Yield rows for one shape of messages."""
    states = np.zeros((environments, numbers), np.float32)
    rewards = np.zeros(environments)
    if environments == 1:
        yield compare("connect, ms", both, lambda side: connect_ms(side, states), arguments)
    with contextlib.ExitStack() as stack:
        clients = {id(side): stack.enter_context(side.client(environments)) for side in both}
        for client in clients.values():
            client.init(states)

        def steps(side: Side) -> float:
            client, taken, begin = clients[id(side)], 0, time.perf_counter()
            while (elapsed := time.perf_counter() - begin) < arguments.seconds:
                client.send(rewards, states)
                taken += environments
            return taken / elapsed

        what = f"steps/s, {environments} x {states[0].nbytes:,} bytes"
        yield compare(what, both, steps, arguments)


def connect_ms(side: Side, states: np.ndarray) -> float:
    """Return the milliseconds from nothing to the first action, of the median connection."""
    seconds = []
    for _ in range(CONNECTIONS):
        begin = time.perf_counter()
        with side.client(len(states)) as client:
            client.init(states)
            seconds.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(seconds)


def compare(
    what: str,
    both: Sequence[Side],
    measured: Callable[[Side], float],
    arguments: argparse.Namespace,
) -> Row:
    """Measure both in turn; the first window of each is left out."""
    windows = [[measured(side) for side in both] for _ in range(arguments.windows + 1)][1:]
    without, with_ = (statistics.median(each) for each in zip(*windows, strict=True))
    return Row(what, without, with_, with_ / without)


if __name__ == "__main__":
    main()

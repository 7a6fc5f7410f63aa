"""How many environment steps a second an RLX server answers, and how long a client waits.

    python benchmarks/serving.py
    python benchmarks/serving.py --connections 32 --environments 1 --shapes cartpole --modes batched

For each number of connections and of environments on each: steps a second, latency of a message
(50th and 99th percentile), and beside them the echo limit of the same run, which is what the same
clients reach with the same messages when a forked process a connection answers at once, without
evaluating a network. Learning is off (``learn: false``) unless ``--learn`` is given; then the last
column says how many steps a second were learnt from, which the global step counts. Clients are the
bundled ones, a process each, and share the machine with the servers. Memory is that of the RLX
server with all that it started, shared pages counted once (PSS).
"""

import argparse
import contextlib
import itertools
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from servers import ATARI, CARTPOLE, MIB, family_of, free_address, memory_of, running_servers

from relaax.client import Client
from relaax.client.vector_client import VectorClient
from relaax.common.protocol import FrameConnection, binary, encode_action
from relaax.common.protocol.binary import Welcome

SHAPES: dict[str, tuple[dict[str, Any], np.ndarray]] = {
    "cartpole": (CARTPOLE, np.zeros(4, np.float32)),
    "atari": (ATARI, np.zeros((84, 84), np.uint8)),
}

#: Messages in a row that a client sends before it is measured.
WARM_UP_MESSAGES = 20

#: With learning on, as long as this too: gradients are compiled when the first rollouts are full.
LEARNING_WARM_UP_S = 10.0

DEFAULT_JSON = Path(__file__).parent / "results" / "serving.json"


@dataclass(frozen=True)
class Cell:
    """What is measured together."""

    shape: str
    mode: str
    protocol: int
    connections: int
    environments: int


@dataclass(frozen=True)
class Figures:
    """What came out."""

    steps_per_s: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    cell: Cell
    served: Figures
    echo: Figures
    memory_mib: float
    #: None where nobody learns.
    learnt_per_s: float | None


def main() -> None:
    arguments = parse()
    cells = [cell for cell in all_cells(arguments) if is_sensible(cell)]
    print(f"{len(cells)} cells, {arguments.seconds:g} s each and as long for the echo\n")
    print(HEADINGS + (f"{'learnt/s':>10}" if arguments.learn else ""))
    rows = []
    for group, members in itertools.groupby(cells, key=lambda cell: (cell.shape, cell.mode)):
        for cell in members:
            rows.append(measure(cell, *group, arguments.seconds, arguments.learn))
            print(as_line(rows[-1]), flush=True)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))
    print(f"\nwritten to {arguments.json}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--environments", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--modes", nargs="+", choices=("inline", "batched"),
                        default=["inline", "batched"])  # fmt: skip
    parser.add_argument("--protocols", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    parser.add_argument("--seconds", type=float, default=4.0, help="for each figure (default 4)")
    parser.add_argument("--learn", action="store_true", help="with learning on")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON, help="default %(default)s")
    return parser.parse_args()


def all_cells(arguments: argparse.Namespace) -> Iterator[Cell]:
    for values in itertools.product(
        arguments.shapes,
        arguments.modes,
        arguments.protocols,
        arguments.connections,
        arguments.environments,
    ):
        yield Cell(*values)


def is_sensible(cell: Cell) -> bool:
    """Version 1 carries one environment; 128 inline workers need minutes to start on two cores."""
    if cell.protocol == 1 and cell.environments > 1:
        return False
    if cell.mode == "inline" and cell.connections > 32:
        return False
    return cell.shape == "cartpole" or cell.connections * cell.environments <= 1024


def measure(cell: Cell, shape: str, mode: str, seconds: float, learn: bool) -> Row:
    algorithm, observation = SHAPES[shape]
    with echo_server(cell, observation) as url:
        echo = drive(url, cell, observation, seconds)
    section = {**algorithm, "learn": learn, "seed": 1}
    with running_servers(section, mode) as servers:
        memory: list[float] = []
        steps: list[tuple[int, float]] = []

        def look() -> None:
            memory.append(memory_of(family_of(servers.rlx_server)).proportional / MIB)
            if learn:
                steps.append(global_step(servers.parameter_server_url))

        warm_up_s = LEARNING_WARM_UP_S if learn else 0.0
        served = drive(servers.rlx_server_url, cell, observation, seconds, look, warm_up_s)
        if learn:
            steps.append(global_step(servers.parameter_server_url))
    learnt = None
    if learn:
        (before, began), (after, ended) = steps
        learnt = (after - before) / (ended - began)
    return Row(cell, served, echo, memory[0], learnt)


def global_step(parameter_server_url: str) -> tuple[int, float]:
    """Return the global step and the time; in a process of its own, for clients are forked here."""
    program = (
        "import sys, time; from relaax.common.bridge import Bridge; "
        "print(Bridge(sys.argv[1]).increment_global_t(0), time.monotonic())"
    )
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program, parameter_server_url],
        check=True,
        capture_output=True,
        text=True,
    )
    steps, now = done.stdout.split()
    return int(steps), float(now)


def drive(
    url: str,
    cell: Cell,
    observation: np.ndarray,
    seconds: float,
    when_connected: Any = None,
    warm_up_s: float = 0.0,
) -> Figures:
    """Let all clients work for ``seconds`` and return what they reached together."""
    context = multiprocessing.get_context("fork")
    start = context.Event()
    pipes, clients = [], []
    for _ in range(cell.connections):
        ours, theirs = context.Pipe()
        client = context.Process(
            target=run_client,
            args=(url, cell, observation, seconds, warm_up_s, start, theirs),
            daemon=True,
        )
        client.start()
        theirs.close()
        pipes.append(ours)
        clients.append(client)
    for pipe in pipes:
        if not pipe.poll(120) or pipe.recv() != "connected":
            raise RuntimeError(f"a client could not connect to {url}")
    if when_connected is not None:
        when_connected()
    start.set()
    latencies = [pipe.recv() for pipe in pipes]
    for client in clients:
        client.join()
    merged = np.concatenate(latencies)
    p50, p99 = np.percentile(merged, (50, 99)) * 1e3
    return Figures(len(merged) * cell.environments / seconds, float(p50), float(p99))


def run_client(
    url: str,
    cell: Cell,
    observation: np.ndarray,
    seconds: float,
    warm_up_s: float,
    start: Any,
    pipe: "Connection[Any, Any]",
) -> None:
    """Step as fast as answers come, and tell how long each took."""
    connect, step = (single if cell.protocol == 1 or cell.environments == 1 else vector)(
        url, cell, observation
    )
    connect()
    warm_at = time.perf_counter() + warm_up_s
    for _ in range(WARM_UP_MESSAGES):
        step()
    while time.perf_counter() < warm_at:
        step()
    pipe.send("connected")
    start.wait()
    latencies = []
    now = time.perf_counter()
    end = now + seconds
    while now < end:
        step()
        then, now = now, time.perf_counter()
        latencies.append(now - then)
    pipe.send(np.array(latencies))


def single(url: str, cell: Cell, observation: np.ndarray) -> Any:
    client = Client(url, protocol=1 if cell.protocol == 1 else 2)
    state: Any = observation
    if cell.protocol == 1 and observation.ndim == 1:
        state = observation.tolist()
    return lambda: client.init(state), lambda: client.send(1.0, state)


def vector(url: str, cell: Cell, observation: np.ndarray) -> Any:
    client = VectorClient(url, cell.environments)
    observations = np.stack([observation] * cell.environments)
    rewards = np.ones(cell.environments)
    return lambda: client.init(observations), lambda: client.send(rewards, observations)


@contextlib.contextmanager
def echo_server(cell: Cell, observation: np.ndarray) -> Iterator[str]:
    """Answer every message at once with actions that were encoded before."""
    url = free_address()
    host, _, port = url.rpartition(":")
    listener = socket.create_server((host, int(port)), backlog=1024)
    pid = os.fork()
    if pid == 0:
        try:
            echo(listener, cell)
        finally:
            os._exit(0)
    listener.close()
    try:
        yield url
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


def echo(listener: socket.socket, cell: Cell) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            answer_at_once(FrameConnection(connection), cell)
            os._exit(0)
        connection.close()


def answer_at_once(frames: FrameConnection, cell: Cell) -> None:
    actions = np.zeros(cell.environments, np.int64)
    numbers = np.arange(cell.environments)
    flags = np.zeros(cell.environments, np.uint8)
    answer = binary.encode_answers(numbers, flags, actions, np.zeros(0))
    if cell.protocol == 1:
        answer = encode_action(0)
    with contextlib.suppress(OSError):
        payload = frames.receive()
        while payload is not None:
            is_hello = binary.is_hello(payload)
            frames.send(binary.encode_welcome(Welcome()) if is_hello else answer)
            payload = frames.receive()


HEADINGS = (
    f"{'shape':<9}{'mode':<9}{'RLX':>3}{'conn':>6}{'envs':>6}{'steps/s':>10}{'p50 ms':>9}"
    f"{'p99 ms':>9}{'echo/s':>10}{'p99 ms':>9}{'of echo':>9}{'MiB':>7}"
)


def as_line(row: Row) -> str:
    cell, served, echo = row.cell, row.served, row.echo
    return (
        f"{cell.shape:<9}{cell.mode:<9}{cell.protocol:>3}{cell.connections:>6}"
        f"{cell.environments:>6}{served.steps_per_s:>10,.0f}{served.p50_ms:>9.2f}"
        f"{served.p99_ms:>9.2f}{echo.steps_per_s:>10,.0f}{echo.p99_ms:>9.2f}"
        f"{served.steps_per_s / echo.steps_per_s:>9.0%}{row.memory_mib:>7,.0f}"
        + (f"{row.learnt_per_s:>10,.0f}" if row.learnt_per_s is not None else "")
    )


if __name__ == "__main__":
    main()

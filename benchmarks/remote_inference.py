"""Workers that ask an inference server, beside workers that evaluate the policy themselves.

    python benchmarks/remote_inference.py
    python benchmarks/remote_inference.py --shapes atari --connections 8 --environments 4

Two RLX servers with a worker each, which have the policy, and two whose workers ask one inference
server: all of them run at the same time, on one parameter server and one replay server, which
stores all steps. Clients of one kind play, and then those of the other, in turn. Steps a second are
those of both RLX servers together, the median of all rounds; the ratio is the median of those of
each round. MiB is the memory of a worker (PSS: shared pages are divided among those that share
them), and of an RLX server with all that it has forked.

Observations are the same in all steps, and nothing is learnt: no learner draws from the replay.
"""

import argparse
import contextlib
import re
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import yaml
from cells import SHAPES, Cell
from clients import Window, connected_clients
from launch import REPOSITORY
from process_memory import MIB, family_of, memory_of
from processes import end_on_sigterm
from report import Results, add_json, parser_of
from servers import free_address, started, temporary_directory

#: The kinds of workers: with the policy, and without it.
INLINE, REMOTE = "inline", "remote"

RLX_SERVERS = 2


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    shape: str
    connections: int
    environments: int
    kind: str
    steps_per_s: float
    p99_ms: float
    worker_mib: float
    rlx_server_mib: float
    #: Of the inference server; None for workers that have the policy.
    inference_server_mib: float | None
    #: To the steps of workers that have the policy.
    ratio: float


@dataclass(frozen=True)
class Played:
    """The figures of one round of one kind."""

    steps_per_s: float
    p99_ms: float


class Fleet:
    """All servers of a cell, which run until ``resources`` end."""

    def __init__(self, cell: Cell, directory: Path, resources: contextlib.ExitStack) -> None:
        self._cell, self._directory = cell, directory
        parameters, replay, inference = (free_address() for _ in range(3))
        self._configuration = directory / "benchmark.yaml"
        self._configuration.write_text(yaml.safe_dump(content_of(cell, parameters, replay)))
        start = partial(started, resources, self._configuration, REPOSITORY)
        start("relaax-parameter-server", "training: step", ["--bind", parameters])
        start("relaax-replay-server", "storing what", ["--bind", replay])
        self._inference = start("relaax-inference-server", "choosing at", ["--bind", inference])
        self._urls: dict[str, list[str]] = {INLINE: [], REMOTE: []}
        self._servers: dict[str, list[subprocess.Popen[bytes]]] = {INLINE: [], REMOTE: []}
        for kind, more in ((INLINE, []), (REMOTE, ["--inference-servers", inference])):
            for number in range(RLX_SERVERS):
                url = free_address()
                name, flags = f"{kind}-{number}", ["--bind", url, *more]
                server = start("relaax-rlx-server", "serving at", flags, name)
                self._urls[kind].append(url)
                self._servers[kind].append(server)

    def play(self, kind: str, seconds: float) -> Played:
        """Let environments of all RLX servers of a kind step at the same time."""
        with contextlib.ExitStack() as connected:
            clients = [
                connected.enter_context(connected_clients(url, self._cell))
                for url in self._urls[kind]
            ]
            window = Window.after(1.0, seconds)
            for each in clients:
                each.play(window)
            figures = [each.figures(window) for each in clients]
        return Played(
            sum(each.steps_per_s for each in figures), max(each.p99_ms for each in figures)
        )

    def row(self, kind: str, rounds: list[dict[str, Played]]) -> Row:
        """Return the line of a kind, after all rounds."""
        server = self._servers[kind][0]
        is_remote = kind == REMOTE
        return Row(
            self._cell.shape,
            self._cell.connections,
            self._cell.environments,
            kind,
            statistics.median(each[kind].steps_per_s for each in rounds),
            statistics.median(each[kind].p99_ms for each in rounds),
            memory_of([psutil.Process(self._worker_of(kind))]).proportional / MIB,
            memory_of(family_of(server)).proportional / MIB,
            memory_of(family_of(self._inference)).proportional / MIB if is_remote else None,
            statistics.median(each[kind].steps_per_s / each[INLINE].steps_per_s for each in rounds),
        )

    def _worker_of(self, kind: str) -> int:
        """Return the process of the first RLX server's worker."""
        log = (self._directory / f"{kind}-0.log").read_text()
        return int(re.findall(r"worker \d+ starts \(pid (\d+)\)", log)[-1])


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    results = Results(arguments.json)
    print(f"{RLX_SERVERS} RLX servers, {arguments.rounds} rounds of {arguments.seconds:g} s\n")
    print(HEADINGS, flush=True)
    for shape in arguments.shapes:
        cell = Cell(shape, 1, 2, arguments.connections, arguments.environments)
        for row in measured(cell, arguments):
            print(as_line(row), flush=True)
            results.add(row)
    results.close()


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--connections", type=int, default=4, help="of each RLX server (default 4)")
    parser.add_argument("--environments", type=int, default=8, metavar="N",
                        help="on each connection (default 8)")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=3, help="of each kind (default 3)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a round (default 5)")
    add_json(parser, "remote_inference")
    return parser.parse_args()


def content_of(cell: Cell, parameters: str, replay: str) -> dict[str, Any]:
    """Return the configuration of all servers: DQN, whose steps are stored and not learnt from."""
    return {
        "relaax-replay-server": {"--parameter-server": parameters, "--replay-servers": [replay]},
        "relaax-inference-server": {"--parameter-server": parameters},
        "relaax-rlx-server": {
            "--parameter-server": parameters,
            "--replay-servers": [replay],
            "--workers": 1,
            "--worker-memory": 16,
            "--log-level": "INFO",
        },
        "algorithm": {
            "path": str(REPOSITORY / "algorithms" / "dqn"),
            **cell.section,
            "replay_size": 20_000,
            "updates_per_step": None,
        },
    }


def measured(cell: Cell, arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield the lines of both kinds."""
    with temporary_directory() as name, contextlib.ExitStack() as resources:
        fleet = Fleet(cell, Path(name), resources)
        rounds = [
            {kind: fleet.play(kind, arguments.seconds) for kind in (INLINE, REMOTE)}
            for _ in range(arguments.rounds)
        ]
        for kind in (INLINE, REMOTE):
            yield fleet.row(kind, rounds)


HEADINGS = (
    "shape     conns x envs  kind      steps/s  p99 ms  worker MiB  RLX server MiB  "
    "inference server MiB  ratio"
)


def as_line(row: Row) -> str:
    inference = "" if row.inference_server_mib is None else f"{row.inference_server_mib:,.0f}"
    size = f"{row.connections} x {row.environments}"
    return (
        f"{row.shape:<10}{size:>12}  {row.kind:<7}{row.steps_per_s:>10,.0f}{row.p99_ms:>8.1f}"
        f"{row.worker_mib:>12,.0f}{row.rlx_server_mib:>16,.0f}{inference:>22}{row.ratio:>7.2f}"
    )


if __name__ == "__main__":
    main()

"""One training of several RLX servers behind HAProxy and several shards, and what it costs."""

import contextlib
import itertools
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil
import yaml
from cells import Cell, Unmeasured
from clients import Figures, Window, connected_clients
from echo import echo_server
from haproxy import haproxy_command
from launch import REPOSITORY
from offered_load import OfferedLoad, figures_within, offered_load
from process_memory import MIB, family_of, memory_of
from processes import running
from scale_rows import ROLES, Row, Size
from servers import COMMANDS, START_DEADLINE_S, free_address

#: A sample of Prometheus' text format.
_SAMPLE = re.compile(r"^(relaax_\w+)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)

#: Asks without the proxy that variables of the environment name: servers are on this machine.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))

#: Environments play so long before they are measured: gradients are compiled meanwhile.
WARM_UP_S = 8.0

EPISODE_LEN = 5

#: Of clients that share processes: an event loop with a thousand connections takes little.
_CLIENT_PROCESSES = 2


def _cell(size: Size) -> Cell:
    """Return what the clients are."""
    return Cell("cartpole", 1, 2, size.connections, size.environments)


def measure(size: Size, seconds: float, windows: int, directory: Path) -> Row:
    """Start all, let clients play, and stop all; Unmeasured if that fails.

    They play for as many ``windows`` of ``seconds``. The row is that of the fastest one: a virtual
    machine whose host is busy stands still for moments, which are no cost of anything here.
    """
    echo = _echo(size, seconds, windows, directory)
    with _training(size, directory) as training, _load(training.url, size) as load:
        whole = Window.after(WARM_UP_S, seconds * windows)
        load.play(whole)
        whole.wait_for_begin()
        readings = [training.reading()]
        for window in whole.divided(windows):
            window.wait_for_end()
            readings.append(training.reading())
        parts = [Window(before.at, after.at) for before, after in itertools.pairwise(readings)]
        figures = load.figures_of(parts)
        fastest = max(range(windows), key=lambda number: figures[number].steps_per_s)
        before, after = readings[fastest : fastest + 2]
        rates = {
            name: (after.counts[name] - count) / (after.at - before.at)
            for name, count in before.counts.items()
        }
        return Row(
            size,
            figures[fastest].steps_per_s,
            figures[fastest].p50_ms,
            figures[fastest].p99_ms,
            echo.steps_per_s,
            rates["batches"],
            rates["updates"],
            {role: rates[role] for role in ROLES},
            training.mib(),
        )


@dataclass(frozen=True)
class Reading:
    """What has been counted since the start, and when."""

    at: float
    #: Seconds of processors by role, updates, and batches.
    counts: Mapping[str, float]


class Training:
    """What runs, by role."""

    def __init__(
        self, url: str, roles: Mapping[str, Sequence[subprocess.Popen[bytes]]], http: Sequence[str]
    ) -> None:
        #: Where clients connect: the balancer.
        self.url = url
        self._roles = roles
        #: Those of the first shard, and of the RLX servers.
        self._http = http

    def reading(self) -> Reading:
        """Return what has been counted until now."""
        at = time.monotonic()
        found = {role: _cpu_s(processes) for role, processes in self._processes().items()}
        shard, *servers = (_figures(url) for url in self._http)
        found["updates"] = shard.get("relaax_updates_total", 0.0)
        found["batches"] = sum(each["relaax_batch_size_count"] for each in servers)
        return Reading(at, found)

    def mib(self) -> dict[str, float]:
        """Return the memory of each role."""
        return {
            role: memory_of(processes).proportional / MIB
            for role, processes in self._processes().items()
        }

    def _processes(self) -> dict[str, list[psutil.Process]]:
        found = {
            role: [member for process in processes for member in family_of(process)]
            for role, processes in self._roles.items()
        }
        servers = {member.pid for members in found.values() for member in members}
        own = psutil.Process().children(recursive=True)
        return {**found, "clients": [each for each in own if each.pid not in servers]}


@contextlib.contextmanager
def _training(size: Size, directory: Path) -> Iterator[Training]:
    """Start shards, RLX servers and HAProxy, and wait until all can be connected to."""
    shards = [free_address() for _ in range(size.shards)]
    rlx = [(free_address(), free_address()) for _ in range(size.servers)]
    http = free_address()
    configuration = directory / "scale.yaml"
    content: dict[str, Any] = {
        "relaax-parameter-server": {"--shards": shards},
        "relaax-rlx-server": {"--workers": 1},
        "algorithm": {
            "path": str(REPOSITORY / "algorithms" / "da3c"),
            "action_size": 2,
            "state_size": [4],
            "hidden_layers": [size.hidden, size.hidden],
            "episode_len": EPISODE_LEN,
            "learn": size.learns,
            "seed": 1,
        },
    }
    if size.shards == 1:
        content["relaax-parameter-server"] = {"--bind": shards[0]}
        content["relaax-rlx-server"]["--parameter-server"] = shards[0]
    configuration.write_text(yaml.safe_dump(content))
    with contextlib.ExitStack() as resources:

        def start(name: str, *command: Any) -> subprocess.Popen[bytes]:
            log = resources.enter_context((directory / f"{name}.log").open("wb"))
            return resources.enter_context(
                running(list(command), cwd=directory, stdout=log, stderr=subprocess.STDOUT)
            )

        of_shards = []
        for number in range(1, size.shards + 1):
            flags = ["--http-bind", http] if number == 1 else []
            if size.shards > 1:
                flags += ["--shard", f"{number}/{size.shards}"]
            program = [COMMANDS / "relaax-parameter-server", "--config", configuration]
            of_shards.append(start(f"shard-{number}", *program, *flags))
        of_rlx = []
        for number, (url, operators) in enumerate(rlx, 1):
            program = [COMMANDS / "relaax-rlx-server", "--config", configuration]
            flags = ["--bind", url, "--http-bind", operators]
            of_rlx.append(start(f"rlx-{number}", *program, *flags))
        for _, operators in rlx:
            _wait_for(operators, [*of_shards, *of_rlx], directory, _is_ready)
        balancer = free_address()
        of_balancer = start(
            "haproxy", *haproxy_command(balancer, [url for url, _ in rlx], directory)
        )
        _wait_for(balancer, [of_balancer], directory)
        roles = {"balancer": [of_balancer], "rlx": of_rlx, "shards": of_shards}
        yield Training(balancer, roles, [http, *(operators for _, operators in rlx)])


class _Load(Protocol):
    """Clients that have got their first actions."""

    def play(self, window: Window) -> None:
        """Let all of them step from now to the window's end."""

    def figures_of(self, windows: Sequence[Window]) -> list[Figures]:
        """Wait for the end, and return the figures of several windows within that of ``play``."""


class _SharedProcesses:
    """Many connections in a few processes, as clients of one process each are used."""

    def __init__(self, load: OfferedLoad, size: Size) -> None:
        if load.admitted < size.connections:
            refused = size.connections - load.admitted
            raise Unmeasured(f"{refused} connections were refused: {load.refusal}")
        self._load = load
        self._rate = size.rate

    def play(self, window: Window) -> None:
        self._load.play(window.end, self._rate)

    def figures_of(self, windows: Sequence[Window]) -> list[Figures]:
        played = self._load.played()
        if played.lost:
            raise Unmeasured(f"{played.lost} connections were lost: {played.reason}")
        return [figures_within(played, window) for window in windows]


@contextlib.contextmanager
def _load(url: str, size: Size) -> Iterator[_Load]:
    """Connect the clients."""
    if size.shares_client_processes:
        with offered_load(url, _cell(size), _CLIENT_PROCESSES) as load:
            yield _SharedProcesses(load, size)
    else:
        with connected_clients(url, _cell(size)) as clients:
            yield clients


def _echo(size: Size, seconds: float, windows: int, directory: Path) -> Figures:
    with contextlib.ExitStack() as resources:
        echo = resources.enter_context(echo_server(_cell(size)))
        balancer = free_address()
        process = resources.enter_context(running(haproxy_command(balancer, [echo], directory)))
        _wait_for(balancer, [process], directory)
        load = resources.enter_context(_load(balancer, size))
        whole = Window.after(1.0, seconds * windows)
        load.play(whole)
        figures = load.figures_of(whole.divided(windows))
        return max(figures, key=lambda each: each.steps_per_s)


def _listens(url: str) -> None:
    """Raise OSError where nobody listens."""
    host, _, port = url.rpartition(":")
    socket.create_connection((host, int(port)), timeout=5).close()


def _is_ready(operators: str) -> None:
    """Raise OSError while a server is not ready; its address is that for operators."""
    _DIRECT.open(f"http://{operators}/readyz", timeout=5).close()


def _wait_for(
    url: str,
    processes: Sequence[subprocess.Popen[bytes]],
    directory: Path,
    require: Callable[[str], None] = _listens,
) -> None:
    """Wait until ``require`` raises no OSError; RuntimeError with all logs if a process ends."""
    deadline = time.monotonic() + START_DEADLINE_S
    while True:
        with contextlib.suppress(OSError):
            require(url)
            return
        if time.monotonic() > deadline or any(each.poll() is not None for each in processes):
            logs = "\n".join(path.read_text()[-2000:] for path in directory.glob("*.log"))
            raise RuntimeError(f"nobody answers at {url}:\n{logs}")
        time.sleep(0.05)


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def _figures(url: str) -> dict[str, float]:
    """Return the sum of each of a server's figures over its labels."""
    found: dict[str, float] = {}
    with _DIRECT.open(f"http://{url}/metrics", timeout=10) as answer:
        for name, value in _SAMPLE.findall(answer.read().decode()):
            found[name] = found.get(name, 0.0) + float(value)
    return found

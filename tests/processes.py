"""A training of real processes on free ports of the loopback interface."""

import itertools
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psutil
import yaml
from zygote import ForkedProgram, can_fork, zygote

REPOSITORY = Path(__file__).parent.parent
COMMANDS = Path(sys.executable).parent
DEADLINE_S = 120.0

#: An environment variable that every process of a test inherits, so that none is overlooked.
MARK = "RELAAX_TEST_DIRECTORY"

SMALL_DA3C = {
    "path": str(REPOSITORY / "algorithms" / "da3c"),
    "action_size": 2,
    "state_size": [4],
    "hidden_layers": [16],
    "episode_len": 5,
    "seed": 1,
}

#: Learns CartPole within seconds, with shared workers.
FAST_DA3C = {
    **SMALL_DA3C,
    "hidden_layers": [64, 64], "episode_len": 32, "initial_learning_rate": 1e-3, "passes": 20,
    "entropy_beta": 0, "rewards_gamma": 0.98, "trace_decay": 0.9, "policy_clip": 0.2,
    "normalize_advantages": True, "rollouts_per_update": 32, "RMSProp": {"decay": 0.99},
}  # fmt: skip

SMALL_PPO = {
    "path": str(REPOSITORY / "algorithms" / "ppo"), "state_size": [4], "action_size": 2,
    "hidden_layers": [8], "episode_len": 16, "rollouts_per_batch": 4, "passes": 2,
    "minibatches": 2, "seed": 1,
}  # fmt: skip

SMALL_SAC = {
    "path": str(REPOSITORY / "algorithms" / "sac"), "state_size": [3], "action_size": 1,
    "action_low": -2, "action_high": 2, "hidden_layers": [8], "batch_size": 16,
    "learning_starts": 20, "updates_per_step": 0.25, "replay_size": 10_000, "seed": 1,
}  # fmt: skip


@contextmanager
def repeated(call: Callable[[], object]) -> Iterator[Callable[[], int]]:
    """Call something again and again on a thread; what is yielded ends that, and returns how often.

    Where a test fails, nothing waits for the call that goes on: what it waits for is closed later.
    """
    is_done = threading.Event()

    def go_on() -> int:
        times = 0
        while not is_done.wait(0.005):
            call()
            times += 1
        return times

    def end() -> int:
        is_done.set()
        return calls.result()

    thread = ThreadPoolExecutor(1)
    calls = thread.submit(go_on)
    try:
        yield end
    finally:
        is_done.set()
        thread.shutdown(wait=False)


def wait_for(condition: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
    """Return the first true value of ``condition``; fail when the deadline passes."""
    deadline = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not happen within {deadline_s:g} s"
        time.sleep(0.02)


#: Below those that the system gives to outgoing connections: one of these could take a port between
#: the probe and the server's start.
PORTS = range(10_000, 32_000)


#: So many ports from a given one on are kept together, for commands that count on from a port.
RUN = 4


def _own_ports() -> Iterator[int]:
    """Yield the ports of this one of the processes that run tests, all of them before any again.

    So no port is given to two servers of which neither listens yet, or to two tests at a time.
    """
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    own = PORTS[number * RUN :: count * RUN]
    return itertools.cycle(random.sample(own, len(own)))


_PORTS = _own_ports()


def free_port(run: int = 1) -> int:
    """Return the first of ``run`` loopback ports in a row that nobody listens at."""
    assert run <= RUN
    for port in _PORTS:
        with ExitStack() as probes, suppress(OSError):
            for each in range(port, port + run):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", each))
            return port
    raise AssertionError("ports come again and again")


class Process:
    """A program whose output is kept in files, so that a full pipe never blocks it."""

    def __init__(self, name: str, arguments: Sequence[str], directory: Path) -> None:
        self.name = name
        count = len(list(directory.glob(f"{name}-*.log")))
        self.log = directory / f"{name}-{count}.log"
        with self.log.open("wb") as log:
            self._popen = self._start(list(map(str, arguments)), directory, log)
        self.pid = self._popen.pid

    def _start(
        self, arguments: list[str], directory: Path, log: IO[bytes]
    ) -> subprocess.Popen[bytes] | ForkedProgram:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", MARK: str(directory)}
        if can_fork(arguments, environment):
            return zygote().start(arguments, directory, environment, log.fileno())
        return subprocess.Popen(
            arguments, cwd=directory, stdout=log, stderr=subprocess.STDOUT, env=environment
        )

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def says(self, pattern: str, deadline_s: float = DEADLINE_S) -> re.Match[str]:
        """Wait until a line of the output matches."""
        match: re.Match[str] = wait_for(
            lambda: re.search(pattern, self.output()), f"{self.name} saying {pattern!r}", deadline_s
        )
        return match

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children(recursive=True)

    def signal(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def wait(self, deadline_s: float = DEADLINE_S) -> int:
        return self._popen.wait(deadline_s)

    def is_running(self) -> bool:
        return self._popen.poll() is None

    def kill(self) -> None:
        """SIGKILL this process alone, and collect it."""
        self._popen.kill()
        self._popen.wait()

    def kill_family(self) -> None:
        """End the process and whatever it started."""
        family = self.children() if self.is_running() else []
        self.kill()
        for member in family:
            if member.is_running():
                member.kill()


class Training:
    """Configuration, servers and environments of one test; stops what it started."""

    def __init__(self, directory: Path, workers: str | int = "connection") -> None:
        self.directory = directory
        self.workers = workers
        self.parameter_server_url = f"127.0.0.1:{free_port()}"
        self.rlx_server_url = f"127.0.0.1:{free_port()}"
        self.learner_url = f"127.0.0.1:{free_port()}"
        self.checkpoints = directory / "checkpoints"
        self.processes: list[Process] = []
        #: The section of all servers.
        self.access: dict[str, Any] = {}
        self.configure(SMALL_DA3C)

    def configure(
        self,
        algorithm: dict[str, Any],
        parameter_server: dict[str, Any] | None = None,
        rlx_server: dict[str, Any] | None = None,
        learner: dict[str, Any] | None = None,
        replay_server: dict[str, Any] | None = None,
    ) -> None:
        """Write the YAML file; options are given by their names without dashes in front."""
        content = {
            "relaax-parameter-server": {
                "--bind": self.parameter_server_url,
                "--checkpoint-dir": str(self.checkpoints),
                "--log-level": "INFO",
                **{f"--{key}": value for key, value in (parameter_server or {}).items()},
            },
            "relaax-rlx-server": {
                "--bind": self.rlx_server_url,
                "--parameter-server": self.parameter_server_url,
                "--learner": self.learner_url,
                "--workers": self.workers,
                "--log-level": "INFO",
                **{f"--{key}": value for key, value in (rlx_server or {}).items()},
            },
            "relaax-learner": {
                "--bind": self.learner_url,
                "--parameter-server": self.parameter_server_url,
                "--checkpoint-dir": str(self.directory / "learner"),
                "--log-level": "INFO",
                "--nice": 0,  # or the tests beside this one would leave it next to no time
                **{f"--{key}": value for key, value in (learner or {}).items()},
            },
            "relaax-replay-server": {
                "--parameter-server": self.parameter_server_url,
                "--log-level": "INFO",
                **{f"--{key}": value for key, value in (replay_server or {}).items()},
            },
            "relaax-actor": {
                "--parameter-server": self.parameter_server_url,
                "--learner": self.learner_url,
                "--log-level": "INFO",
            },
            "access": {f"--{key}": value for key, value in self.access.items()},
            "algorithm": algorithm,
        }
        self.yaml = self.directory / "training.yaml"
        self.yaml.write_text(yaml.safe_dump(content))

    def start_parameter_server(self, *flags: str) -> Process:
        process = self.start_command("relaax-parameter-server", *flags)
        process.says("global step is ")
        return process

    def start_rlx_server(self, *flags: str) -> Process:
        process = self.start_command("relaax-rlx-server", *flags)
        process.says("serving at ")
        return process

    def start_learner(self, *flags: str) -> Process:
        process = self.start_command("relaax-learner", *flags)
        process.says("learning from ")
        return process

    def start_replay_server(self, url: str, *flags: str) -> Process:
        process = self.start_command("relaax-replay-server", "--bind", url, *flags)
        process.says("storing what is delivered at ")
        return process

    def start_actors(self, count: int, *flags: str, env: str = "CartPole-v1") -> Process:
        process = self.start_command("relaax-actor", "--env", env, "--actors", str(count), *flags)
        process.says("actors? in ")
        return process

    def start_command(self, command: str, *flags: str) -> Process:
        return self.start(command, [str(COMMANDS / command), "--config", str(self.yaml), *flags])

    def start_environments(
        self, count: int, *flags: str, env: str = "CartPole-v1", is_paced: bool = False
    ) -> Process:
        env = self.paced(env) if is_paced else self.found(env)
        return self.start(
            "environments",
            [
                sys.executable, "-m", "relaax.client.gymnasium_runner", "--env", env,
                "--rlx-server", self.rlx_server_url, "--count", str(count), "--seed", "1", *flags,
            ],
        )  # fmt: skip

    def paced(self, env: str) -> str:
        """Return what an environment is called that plays in real time: see paced_environment."""
        return self.found(f"paced_environment:Paced{env}")

    def found(self, env: str) -> str:
        """Return ``env``; the module of tests or benchmarks that it may name is found then.

        It is ``MODULE:NAME``.
        """
        file = f"{env.partition(':')[0]}.py"
        for folder in ("tests", "benchmarks"):
            if (REPOSITORY / folder / file).exists() and not (self.directory / file).exists():
                (self.directory / file).symlink_to(REPOSITORY / folder / file)
        return env

    def start(self, name: str, arguments: Sequence[str]) -> Process:
        process = Process(name, arguments, self.directory)
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in self.processes:
            process.kill_family()

    def survivors(self) -> list[psutil.Process]:
        """The processes of this test that still run, those included whose parent was killed.

        What was forked has the environment of the process that forks, and a directory of its own.
        """
        return [process for process in psutil.process_iter() if self._owns(process)]

    def _owns(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(MARK) == str(self.directory) or process.cwd() == str(
                self.directory
            )
        except psutil.Error:  # it has just ended, or belongs to somebody else
            return False

    def show(self) -> str:
        """Everything that was said, for the report of a failed test."""
        return "\n".join(f"--- {p.log.name}\n{p.output()[-4000:]}" for p in self.processes)

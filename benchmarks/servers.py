"""The servers that are measured: real ones, on free ports of the loopback interface."""

import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml
from processes import running

REPOSITORY = Path(__file__).parent.parent
COMMANDS = Path(sys.executable).parent
START_DEADLINE_S = 120.0
MIB = 1024 * 1024

CARTPOLE: dict[str, Any] = {"action_size": 2, "state_size": [4], "hidden_layers": [64, 64]}
ATARI: dict[str, Any] = {"action_size": 18, "state_size": [84, 84], "history_len": 4}


@dataclass(frozen=True)
class Servers:
    """A parameter server and an RLX server that are running."""

    parameter_server: subprocess.Popen[bytes]
    rlx_server: subprocess.Popen[bytes]
    parameter_server_url: str
    rlx_server_url: str


#: Below those that the system gives to outgoing connections: one of these could take a port between
#: the probe and the server's start.
PORTS = range(10_000, 32_000)


def free_address() -> str:
    """Return an address of this machine that nobody listens at."""
    while True:
        address = ("127.0.0.1", random.choice(PORTS))  # noqa: S311 - no secret
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(address)
            return f"{address[0]}:{address[1]}"


@contextlib.contextmanager
def running_servers(
    directory: Path,
    algorithm: dict[str, Any],
    inference: str,
    parameter_server: dict[str, Any] | None = None,
) -> Iterator[Servers]:
    """Start both servers with DA3C and stop them, and whatever they started, at the end.

    Their configuration, logs and metrics are in ``directory``, and may be read after the end.
    """
    urls = free_address(), free_address()
    configuration = directory / "benchmark.yaml"
    configuration.write_text(
        yaml.safe_dump(
            {
                "relaax-parameter-server": {
                    "--bind": urls[0],
                    **{f"--{key}": value for key, value in (parameter_server or {}).items()},
                },
                "relaax-rlx-server": {
                    "--bind": urls[1],
                    "--parameter-server": urls[0],
                    "--inference": inference,
                    "--worker-memory": 16,
                    "--log-level": "INFO",
                },
                "algorithm": {"path": str(REPOSITORY / "algorithms" / "da3c"), **algorithm},
            }
        )
    )
    with (
        _running("relaax-parameter-server", configuration, directory) as parameter_server_process,
        _running("relaax-rlx-server", configuration, directory) as rlx_server_process,
    ):
        _wait_until(directory / "relaax-rlx-server.log", "serving at", rlx_server_process)
        yield Servers(parameter_server_process, rlx_server_process, *urls)


def temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """Return a directory that is removed at the end of a block."""
    return tempfile.TemporaryDirectory(prefix="relaax-benchmark-")


@contextlib.contextmanager
def _running(
    command: str, configuration: Path, directory: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with (
        (directory / f"{command}.log").open("wb") as log,
        running(
            [COMMANDS / command, "--config", configuration],
            cwd=directory,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        ) as process,
    ):
        yield process


def _wait_until(log: Path, said: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while said not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"a server did not start:\n{log.read_text()}")
        time.sleep(0.05)


@dataclass(frozen=True)
class Memory:
    """What some processes use, in bytes."""

    #: Shared pages counted for each process; the mean where there are several.
    resident: int
    #: Of all together: shared pages are divided among those who share them.
    proportional: int
    #: What would be free again if the process ended; the mean where there are several.
    private: int


def memory_of(processes: list[psutil.Process]) -> Memory:
    """Measure ``processes`` together."""
    infos = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            infos.append(process.memory_full_info())
    if not infos:
        return Memory(0, 0, 0)
    return Memory(
        resident=sum(info.rss for info in infos) // len(infos),
        proportional=sum(info.pss for info in infos),
        private=sum(info.uss for info in infos) // len(infos),
    )


def everybody(servers: Servers) -> list[psutil.Process]:
    """Return both servers and all that they started."""
    return family_of(servers.parameter_server) + family_of(servers.rlx_server)


def family_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return a process and all that it started."""
    parent = psutil.Process(process.pid)
    return [parent, *parent.children(recursive=True)]

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

import yaml
from launch import Launch
from processes import running

COMMANDS = Path(sys.executable).parent
START_DEADLINE_S = 120.0

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
    """Return an address of this machine with a port that is not in use."""
    while True:
        address = ("127.0.0.1", random.choice(PORTS))  # noqa: S311 - no secret
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(address)
            return f"{address[0]}:{address[1]}"


@contextlib.contextmanager
def running_servers(
    directory: Path,
    algorithm: dict[str, Any],
    launch: Launch,
    parameter_server: dict[str, Any] | None = None,
) -> Iterator[Servers]:
    """Start both servers with DA3C, and stop them and all that they started at the end.

    ``algorithm`` is its section of the configuration, ``parameter_server`` more options of that
    server, by name without dashes. Configuration, logs and metrics are in ``directory``, and may be
    read after the end. RuntimeError shows the log of a server that does not start.
    """
    urls = free_address(), free_address()
    configuration = directory / "benchmark.yaml"
    sections = {
        "relaax-parameter-server": _with_dashes({"bind": urls[0], **(parameter_server or {})}),
        "relaax-rlx-server": _with_dashes(
            {
                "bind": urls[1],
                "parameter-server": urls[0],
                "worker-memory": 16,
                "log-level": "INFO",
                **launch.options,
            }
        ),
        "algorithm": {"path": str(launch.checkout / "algorithms" / "da3c"), **algorithm},
    }
    configuration.write_text(yaml.safe_dump(sections))
    with (
        _running("relaax-parameter-server", configuration, launch.checkout) as first,
        _running("relaax-rlx-server", configuration, launch.checkout) as second,
    ):
        _wait_until(directory / "relaax-rlx-server.log", "serving at", second)
        yield Servers(first, second, *urls)


def temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """Return a directory that is removed at the end of a block."""
    return tempfile.TemporaryDirectory(prefix="relaax-benchmark-")


def _with_dashes(options: dict[str, Any]) -> dict[str, Any]:
    return {f"--{key}": value for key, value in options.items()}


@contextlib.contextmanager
def _running(
    command: str, configuration: Path, checkout: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server of ``checkout``; its log lies beside its configuration."""
    directory = configuration.parent
    with (
        (directory / f"{command}.log").open("wb") as log,
        running(
            [COMMANDS / command, "--config", configuration],
            cwd=directory,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(checkout)},
        ) as process,
    ):
        yield process


def _wait_until(log: Path, said: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while said not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"a server did not start:\n{log.read_text()}")
        time.sleep(0.05)

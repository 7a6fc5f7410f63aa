"""The servers that are measured: real ones, on free ports of the loopback interface."""

import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
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
    """A parameter server and an RLX server that are running, and a learner where it needs one."""

    parameter_server: subprocess.Popen[bytes]
    rlx_server: subprocess.Popen[bytes]
    parameter_server_url: str
    rlx_server_url: str
    learner: subprocess.Popen[bytes] | None = None


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
    learner: dict[str, Any] | None = None,
) -> Iterator[Servers]:
    """Start the servers, and stop them and all that they started at the end.

    ``algorithm`` is its section of the configuration, of DA3C if it has no ``path``;
    ``parameter_server`` more options of that server, by name without dashes; ``learner`` likewise,
    or None for no learner. Configuration, logs and metrics are in ``directory``, and may be read
    after the end. RuntimeError shows the log of a server that does not start.
    """
    urls = free_address(), free_address()
    configuration = directory / "benchmark.yaml"
    sections = {
        "relaax-parameter-server": {"bind": urls[0], **(parameter_server or {})},
        "relaax-rlx-server": {
            "bind": urls[1],
            "parameter-server": urls[0],
            "worker-memory": 16,
            "log-level": "INFO",
            **launch.options,
        },
    }
    if learner is not None:
        at = free_address()
        sections["relaax-learner"] = {"bind": at, "parameter-server": urls[0], **learner}
        sections["relaax-rlx-server"]["learner"] = at
    content: dict[str, Any] = {name: _with_dashes(each) for name, each in sections.items()}
    content["algorithm"] = {"path": str(launch.checkout / "algorithms" / "da3c"), **algorithm}
    configuration.write_text(yaml.safe_dump(content))
    with contextlib.ExitStack() as resources:
        start = partial(started, resources, configuration, launch.checkout)
        first = start("relaax-parameter-server")
        learns = None if learner is None else start("relaax-learner", "learning from")
        second = start("relaax-rlx-server", "serving at")
        yield Servers(first, second, *urls, learns)


@contextlib.contextmanager
def running_shards(
    directory: Path, algorithm: dict[str, Any], count: int, launch: Launch
) -> Iterator[str]:
    """Start a parameter server in ``count`` shards; yield their addresses, joined by commas.

    One shard is a parameter server that is not divided.

    ``algorithm`` is as for ``running_servers``.
    """
    urls = [free_address() for _ in range(count)]
    configuration = directory / "benchmark.yaml"
    addresses: dict[str, Any] = {"bind": urls[0]} if count == 1 else {"shards": urls}
    content: dict[str, Any] = {
        "relaax-parameter-server": _with_dashes(addresses),
        "algorithm": {"path": str(launch.checkout / "algorithms" / "da3c"), **algorithm},
    }
    configuration.write_text(yaml.safe_dump(content))
    with contextlib.ExitStack() as resources:
        for index in range(1, count + 1):
            log = directory / f"shard-{index}.log"
            command = [COMMANDS / "relaax-parameter-server", "--config", configuration]
            if count > 1:
                command += ["--shard", f"{index}/{count}"]
            resources.enter_context(
                running(
                    command,
                    cwd=directory,
                    stdout=resources.enter_context(log.open("wb")),
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "PYTHONPATH": str(launch.checkout)},
                )
            )
        yield ",".join(urls)


def temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """Return a directory that is removed at the end of a block."""
    return tempfile.TemporaryDirectory(prefix="relaax-benchmark-")


def _with_dashes(options: dict[str, Any]) -> dict[str, Any]:
    return {f"--{key}": value for key, value in options.items()}


def started(
    resources: contextlib.ExitStack,
    configuration: Path,
    checkout: Path,
    command: str,
    said: str = "",
    flags: Sequence[str] = (),
    name: str = "",
) -> subprocess.Popen[bytes]:
    """Start a server of ``checkout``, and wait until it has ``said`` that it serves.

    Its log lies beside its configuration, under ``name``, or under that of the command.
    """
    log = configuration.parent / f"{name or command}.log"
    process = resources.enter_context(
        running(
            [COMMANDS / command, "--config", configuration, *flags],
            cwd=log.parent,
            stdout=resources.enter_context(log.open("wb")),
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(checkout)},
        )
    )
    _wait_until(log, said, process)
    return process


def _wait_until(log: Path, said: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while said not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"a server did not start:\n{log.read_text()}")
        time.sleep(0.05)

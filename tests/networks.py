"""Machines of one training, each in a network namespace of its own, joined by a bridge."""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from processes import COMMANDS, Process, Training
from programs import IS_ROOT, needs, program

IP = program("ip")

NEEDS_NAMESPACES = needs(IP is not None and IS_ROOT, "needs ip (apt install iproute2), and root")

_PREFIX_LENGTH = 24
_numbers = itertools.count()


class Network:
    """A bridge, in a namespace of its own, to which machines are joined by pairs of veth.

    Nothing of this machine's own network is touched; ``close`` removes all.
    """

    def __init__(self, training: Training) -> None:
        self._training = training
        self._prefix = f"relaax-{os.getpid()}-{next(_numbers)}"
        self._switch = f"{self._prefix}-switch"
        self._machines: list[Machine] = []
        _ip("netns", "add", self._switch)
        _ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "bridge", "up")

    def add(self) -> "Machine":
        """Return one more machine."""
        number = len(self._machines) + 1
        name, port = f"{self._prefix}-{number}", f"port{number}"
        machine = Machine(self._training, name, f"10.77.0.{number}", self._switch, port)
        self._machines.append(machine)
        _ip("netns", "add", name)
        of_the_machine = ("name", "eth0", "netns", name)
        _ip("-n", self._switch, "link", "add", port, "type", "veth", "peer", *of_the_machine)
        _ip("-n", self._switch, "link", "set", port, "master", "bridge", "up")
        _ip("-n", name, "address", "add", f"{machine.address}/{_PREFIX_LENGTH}", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", name, "link", "set", device, "up")
        return machine

    def close(self) -> None:
        """Remove all namespaces, and what is in them; processes must have ended."""
        for name in [*(machine.name for machine in self._machines), self._switch]:
            subprocess.run([str(IP), "netns", "delete", name], capture_output=True, check=False)


class Machine:
    """A network namespace with one address."""

    def __init__(self, training: Training, name: str, address: str, switch: str, port: str) -> None:
        self._training = training
        self.name = name
        self.address = address
        self._switch = switch
        self._port = port

    def start(self, command: str, *flags: str) -> Process:
        """Run a command of the project with the training's YAML file."""
        program = str(COMMANDS / command)
        return self._start(command, program, "--config", str(self._training.yaml), *flags)

    def start_environments(self, rlx_server: str, env: str, count: int) -> Process:
        """Run environments in real time that connect to the RLX server at that address."""
        flags = ("--env", self._training.paced(env), "--count", str(count), "--seed", "1")
        runner = (sys.executable, "-m", "relaax.client.gymnasium_runner")
        return self._start("environments", *runner, "--rlx-server", rlx_server, *flags)

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """Pull its cable out, and plug it in again: nobody gets a word of what is lost."""
        _ip("-n", self._switch, "link", "set", self._port, "down")
        yield
        _ip("-n", self._switch, "link", "set", self._port, "up")

    def _start(self, name: str, *arguments: str) -> Process:
        return self._training.start(name, self.command(*arguments))

    def command(self, *arguments: str) -> list[str]:
        """Return what runs a program on this machine."""
        return [str(IP), "netns", "exec", self.name, *arguments]


@contextmanager
def network(training: Training) -> Iterator[Network]:
    """Yield a network for a training, whose processes end with it."""
    made = Network(training)
    try:
        yield made
    finally:
        training.close()
        made.close()


def _ip(*arguments: str) -> None:
    subprocess.run([str(IP), *arguments], check=True, capture_output=True, text=True)

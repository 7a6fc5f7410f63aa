"""A process on another machine, as honcho knows processes."""

import signal
import time
from collections.abc import Callable
from typing import Any, Protocol

from honcho.process import Process

from relaax.errors import RelaaxError

#: How long a process that is killed may take to be heard of no more.
_KILL_S = 10.0


class MachineIsGone(RelaaxError):
    """The machine of a process does not answer any more."""


class GivenUp(RelaaxError):
    """A process that was killed has not ended in time, and is waited for no longer."""


class Cluster(Protocol):
    """Where processes run, by name."""

    on_change: Callable[[str], object]

    def host(self, name: str) -> str:
        """Return the address of its machine."""

    def start(self, name: str) -> int:
        """Start it and return its number; MachineIsGone."""

    def output(self, name: str, goes_on: Callable[[], bool]) -> tuple[list[bytes], int | None]:
        """Return what it has printed, and its status if it has ended; MachineIsGone, GivenUp."""

    def signal(self, name: str, number: int) -> None:
        """Send it a signal."""

    def move(self, name: str, goes_on: Callable[[], bool]) -> None:
        """Find another machine for it; GivenUp."""


class RemoteProcess(Process):  # type: ignore[misc]  # honcho has no types
    """A process of a cluster.

    It starts again on another machine when its own is gone, and where it is when it has to be told
    other addresses.
    """

    def __init__(self, *arguments: Any, cluster: Cluster, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._cluster = cluster
        self._is_to_start_again = False
        self._is_stopping = False
        self._give_up_at = float("inf")

    def run(self, events: Any = None, ignore_signals: bool = False) -> None:
        """Run it to its end, in a thread."""
        self._events = events
        try:
            code = self._run()
        except Exception as error:  # what Ray raises when all of it is gone
            self._say(f"lost: {type(error).__name__}: {error}")
            code = 1
        self._send_message({"returncode": code}, type="stop")

    def send(self, number: int) -> None:
        """Stop it with a signal, for good."""
        self._is_stopping = True
        if number == signal.SIGKILL:
            self._give_up_at = min(self._give_up_at, time.monotonic() + _KILL_S)
        self._cluster.signal(self.name, number)

    def pid(self, number: int) -> "Pid":
        """Return what honcho knows it by."""
        return Pid(self, number, self._cluster.host(self.name))

    def start_again(self) -> None:
        """Stop it, and start it with what it is told then."""
        self._is_to_start_again = True
        self._cluster.signal(self.name, signal.SIGTERM)

    def _run(self) -> int:
        has_moved = True
        while True:
            try:
                if not has_moved:
                    self._cluster.move(self.name, lambda: not self._is_stopping)
                    has_moved = True
                self._is_to_start_again = False
                number = self._cluster.start(self.name)
                self._send_message({"pid": self.pid(number)}, type="start")
                if self._is_stopping or self._is_to_start_again:  # the signal was too early
                    self._cluster.signal(self.name, signal.SIGTERM)
                code = self._follow()
            except GivenUp:
                return 128 + signal.SIGKILL
            except MachineIsGone as gone:
                if self._is_stopping:
                    return 128 + signal.SIGKILL
                self._say(f"its machine, {self._cluster.host(self.name)}, {gone}: it starts again")
                has_moved = False
                continue
            if not self._is_to_start_again or self._is_stopping:
                return code
            self._say("others have moved: it starts again, with their addresses")

    def _follow(self) -> int:
        """Pass on what it prints until it ends, and return its status."""
        while True:
            lines, code = self._cluster.output(
                self.name, lambda: time.monotonic() < self._give_up_at
            )
            for line in lines:
                self._send_message(line)
            if code is not None:
                return code

    def _say(self, text: str) -> None:
        self._send_message(f"{text}\n".encode())


class Pid:
    """What honcho sends signals to."""

    def __init__(self, process: RemoteProcess, number: int, host: str) -> None:
        self.process = process
        self._number = number
        self._host = host

    def __str__(self) -> str:
        return f"{self._number} at {self._host}"

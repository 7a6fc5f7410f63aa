"""honcho's manager, with more time for processes to save, and with processes that start again."""

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from honcho.manager import SYSTEM_PRINTER_NAME, Manager
from honcho.printer import Message

from relaax.launcher.launched_process import LaunchedProcess, Stop, send_to_group, terminate
from relaax.processes.run_variables import INCARNATION

#: How long a process may take to exit after SIGTERM. honcho's own limit is 5 seconds after the exit
#: of the first process, which is too short for the upload of a large checkpoint to S3.
GRACE_S = 30.0

#: What kills, or follows from a fault of the program itself.
_FATAL = {
    signal.SIGKILL,
    signal.SIGSEGV,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGILL,
    signal.SIGFPE,
}

#: A process that was killed so often in so many seconds is not started again.
MOST_RESTARTS, RESTARTS_WITHIN_S = 5, 60.0


class ProcessManager(Manager):  # type: ignore[misc]  # honcho has no types
    """Runs processes. When one exits, or after SIGINT or SIGTERM, it stops all and waits.

    With ``restarts`` a process that a signal ends, which was not sent from here, is started again.
    ``events`` is the queue of what processes say, if not one between processes; ``stop`` lets
    one of them save and end.
    """

    def __init__(
        self, printer: Any, restarts: bool = False, events: Any = None, stop: Stop = terminate
    ) -> None:
        super().__init__(printer)
        self._process_ctor = partial(LaunchedProcess, grace_s=GRACE_S, stop=stop)
        self._procmgr: Any = _Groups(self._processes, stop)
        if events is not None:
            self.events: Any = events
        if restarts:
            self.events = _Events(self.events, self._instead_of)
        self._kill_at: float | None = None
        #: By process: when it was started again.
        self._restarted_at: dict[str, deque[float]] = {}

    def terminate(self) -> None:
        """Send SIGTERM to all processes."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + GRACE_S
        super().terminate()

    def kill(self) -> None:
        """Kill the processes that still run after GRACE_S; honcho calls this repeatedly."""
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            super().kill()

    def exit_status(self) -> int:
        """Return the status as a shell would: 128 + N for a process that signal N has ended."""
        code = int(self.returncode)
        return 128 - code if code < 0 else code

    def _start(self) -> None:
        for name, process in self._processes.items():
            process["process"] = self._begin(name)

    def _begin(self, name: str) -> Any:
        """Start what looks after a process, and return that."""
        target = self._processes[name]["obj"].run
        begun = multiprocessing.Process(name=name, target=target, args=(self.events, True))
        begun.start()
        return begun

    def _instead_of(self, message: Any) -> list[Any]:
        """Return what honcho gets to know; start a process again that was killed."""
        if message.type == "start" and self._terminating:  # it was on its way when all were stopped
            self._procmgr.terminate(message.data["pid"])
        if message.type != "stop" or self._terminating:
            return [message]
        name, code = message.name, message.data["returncode"]
        killed_by = _signal_that_ended(code)
        if killed_by is None:
            why = f"{name} has ended with status {code}, and was not killed: all others are stopped"
            return [_line(why), message]
        times = self._restarted_at.setdefault(name, deque(maxlen=MOST_RESTARTS))
        now = time.monotonic()
        if len(times) == MOST_RESTARTS and now - times[0] < RESTARTS_WITHIN_S:
            often = f"{MOST_RESTARTS} times within {RESTARTS_WITHIN_S:g} s"
            why = f"{name} was started again {often}: all others are stopped"
            return [_line(why), message]
        times.append(now)
        process = self._processes[name]
        process["process"].join()
        _is_next_incarnation(process["obj"].env)
        process["process"] = self._begin(name)
        return [_line(f"{name} was ended by signal {killed_by}: it is started again")]


def _is_next_incarnation(variables: Any) -> None:
    """Let environments that start again play other episodes than those that they began with."""
    variables[INCARNATION] = str(int(variables.get(INCARNATION, 0)) + 1)


def _line(text: str) -> Message:
    """Return a line of the launcher's own."""
    return Message("line", f"{text}\n", datetime.now(), SYSTEM_PRINTER_NAME, None)


def _signal_that_ended(returncode: int) -> int | None:
    """Return the signal that has ended a process, if any did; a shell between adds 128 to it.

    A program may end by itself with such a status, after Ctrl-C for instance: of a shell's, those
    signals count alone that no program answers with an end of its own.
    """
    if returncode < 0:
        return -returncode
    return returncode - 128 if returncode - 128 in _FATAL else None


class _Groups:
    """Sends signals to process groups, of which honcho gives each process one."""

    def __init__(self, processes: Mapping[str, Mapping[str, Any]], stop: Stop) -> None:
        self._processes = processes
        self._stop = stop

    def terminate(self, group: int) -> None:
        """Let all of a group save and end."""
        for name, process in self._processes.items():
            if process.get("pid") == group:
                self._stop(name, group)

    def kill(self, group: int) -> None:
        """End all of a group."""
        send_to_group(group, signal.SIGKILL)


class _Events:
    """honcho's queue, of which the messages are read that each one ``instead_of`` becomes.

    Processes that are not forked get the queue itself.
    """

    def __init__(self, events: Any, instead_of: Callable[[Any], list[Any]]) -> None:
        self._events = events
        self._instead_of = instead_of
        self._next: deque[Any] = deque()

    def __reduce__(self) -> tuple[Callable[[Any], Any], tuple[Any]]:
        """Return what pickle makes the queue itself of."""
        return _itself, (self._events,)

    def put(self, message: Any) -> None:
        """Add a message; in the process that looks after one of those that run."""
        self._events.put(message)

    def get(self, timeout: float) -> Any:
        """Return the next message; queue.Empty if there is none in time."""
        if not self._next:
            self._next += self._instead_of(self._events.get(timeout=timeout))
        return self._next.popleft()


def _itself(events: Any) -> Any:
    return events

"""Runs processes, and stops all, in turns, when one exits.

Each process has a thread that starts it, passes its output on, and reports its end. The main thread
prints, decides whether a process starts again, and sends signals.
"""

import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from honcho.colour import get_colours
from honcho.printer import Message

from relaax.errors import RelaaxError

#: The name of the launcher's own lines.
SYSTEM = "system"

#: How long a process may take to exit after SIGTERM: a large checkpoint goes to S3 meanwhile.
GRACE_S = 30.0

#: How long later turns wait for the processes of earlier ones, which may deliver to theirs.
TURN_S = 10.0

#: How long a process that is killed may take until its end is known.
_KILL_S = 10.0

#: How often signals and deadlines are looked at.
_LOOK_S = 0.1

#: Exit status of a run whose time is over: the one of timeout(1).
TIMED_OUT = 124

#: Signals that kill, or that follow from a fault of the program itself.
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


class MachineIsGone(RelaaxError):
    """The machine of a process does not answer any more."""


class GivenUp(RelaaxError):
    """A process that was killed has not ended in time, and is waited for no longer."""


class Engine(Protocol):
    """Where processes run, by name; many threads may call it."""

    #: Called with the name of each process that has to start again, to be told other addresses.
    on_change: Callable[[str], object]

    def host(self, name: str) -> str:
        """Return the address of its machine; empty for this one."""

    def start(self, name: str, number: int) -> int:
        """Start it for the ``number``-th time, and return its process group; MachineIsGone."""

    def output(self, name: str, goes_on: Callable[[], bool]) -> tuple[list[bytes], int | None]:
        """Return the lines that it has printed, and its status if it has ended, -N after signal N.

        It waits for a while. MachineIsGone; GivenUp when ``goes_on`` says no.
        """

    def signal(self, name: str, number: int) -> None:
        """Send it a signal."""

    def move(self, name: str, goes_on: Callable[[], bool]) -> None:
        """Find another machine for it; GivenUp."""


@dataclass(frozen=True)
class Keys:
    """The key that a process keeps alive as long as it runs, and those that it needs one of.

    It is stopped when no process keeps any of ``watch`` alive. The end of a process with keys, with
    status 0, is not the end of the others.
    """

    host: str | None = None
    watch: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunRules:
    """What ends a run, besides a process that exits.

    With ``restarts`` a process that a signal ends, which was not sent from here, is started again.
    With ``ignores_errors`` one that fails is left, and the others run on. None for no time-out.
    ``keys`` are those of processes by their names.
    """

    restarts: bool = False
    ignores_errors: bool = False
    timeout_s: float | None = None
    keys: Mapping[str, Keys] = field(default_factory=dict)


class Runner:
    """Runs processes. When one exits, or after SIGINT or SIGTERM, it stops all and waits.

    ``turns`` has the names of the processes; those with lower numbers are stopped first.
    """

    def __init__(
        self, turns: Mapping[str, int], engine: Engine, printer: Any, rules: RunRules | None = None
    ) -> None:
        self._printer = printer
        self._rules = rules or RunRules()
        timeout_s = self._rules.timeout_s
        self._timed_out_at = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        self._events: queue.Queue[Message] = queue.Queue()
        self._processes = {
            name: _Process(name, engine, self._events, colour)
            for name, colour in zip(turns, get_colours(), strict=False)
        }
        self._turns = turns
        #: The turns that have not been stopped yet, and when the first of them is at the latest.
        self._next_turns = sorted(set(turns.values()))
        self._next_at = float("inf")
        printer.make_room_for([SYSTEM, *self._processes])
        engine.on_change = lambda name: self._processes[name].start_again()
        self._status: int | None = None
        #: When those are killed that were stopped for want of their keys.
        self._without_keys: dict[str, float] = {}
        self._received: int | None = None
        self._kill_at: float | None = None

    def run(self) -> int:
        """Run all to their end, and return the status as a shell would: 128 + N after signal N."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)
        for process in self._processes.values():
            process.begin()
        while self._running():
            with suppress(queue.Empty):
                self._handle(self._events.get(timeout=_LOOK_S))
            self._look()
        status = self._status or 0
        return 128 - status if status < 0 else status

    def _receive(self, number: int, frame: object) -> None:
        self._received = number

    def _look(self) -> None:
        """Act on a signal, and on a deadline that is over."""
        if self._received is not None:
            number, self._received = self._received, None
            self._say(f"{signal.Signals(number).name} received")
            self._status = 128 + number
            self._stop()
        if self._kill_at is None and time.monotonic() >= self._timed_out_at:
            self._say(f"the time-out of {self._rules.timeout_s:g} s is over: all are stopped")
            self._status = TIMED_OUT
            self._stop()
        for name, kill_at in self._without_keys.items():
            if time.monotonic() >= kill_at and not self._processes[name].has_ended:
                self._without_keys[name] = float("inf")
                self._send(signal.SIGKILL, [self._processes[name]])
        if self._kill_at is not None and self._next_turns and self._is_next_due():
            self._stop_next()
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_at = float("inf")
            self._send(signal.SIGKILL, self._running())

    def _handle(self, message: Message) -> None:
        match message.type:
            case "start":
                process = self._processes[message.name]
                self._printer.note_start(message.name, process.group, process.host)
                self._say(f"{message.name} started (pid={process.pid})")
            case "stop":
                self._end(self._processes[message.name], message.data)
            case _:
                self._printer.write(message)

    def _end(self, process: "_Process", code: int) -> None:
        is_without_keys = process.name in self._without_keys
        may_restart = self._rules.restarts and self._kill_at is None and not is_without_keys
        if may_restart and self._starts_again(process, code):
            process.begin()
            return
        process.has_ended = True
        self._printer.note_end(process.name, code)
        self._say(f"{process.name} stopped (rc={code})")
        if self._kill_at is None and self._running() and self._others_run_on(process.name, code):
            self._stop_those_without_keys()
            return
        if self._status is None:
            self._status = code
            self._printer.note_decided_by(process.name)
        self._stop()

    def _others_run_on(self, name: str, code: int) -> bool:
        """Return whether the end of a process is not the end of the others."""
        if name in self._without_keys or (not code and name in self._rules.keys):
            return True
        if code and self._rules.ignores_errors:
            self._say(f"{name} has failed: the others run on (--ignore-worker-error)")
            return True
        return False

    def _stop_those_without_keys(self) -> None:
        """Stop the processes that watch keys of which none is kept alive any more."""
        keys, running = self._rules.keys, self._running()
        alive = {keys[each.name].host for each in running if each.name in keys}
        for process in running:
            watched = keys[process.name].watch if process.name in keys else ()
            if watched and not alive & set(watched) and process.name not in self._without_keys:
                self._say(f"no process keeps {', '.join(watched)} alive, for {process.name}")
                self._without_keys[process.name] = time.monotonic() + GRACE_S
                self._send(signal.SIGTERM, [process])

    def _starts_again(self, process: "_Process", code: int) -> bool:
        """Return whether a process that has ended is to start again, and say why or why not."""
        name, killed_by = process.name, _signal_that_ended(code)
        if killed_by is None:
            self._say(
                f"{name} has ended with status {code}, and was not killed: all others are stopped"
            )
            return False
        now, times = time.monotonic(), process.restarted_at
        if len(times) == MOST_RESTARTS and now - times[0] < RESTARTS_WITHIN_S:
            often = f"{MOST_RESTARTS} times within {RESTARTS_WITHIN_S:g} s"
            self._say(f"{name} was started again {often}: all others are stopped")
            return False
        times.append(now)
        self._say(f"{name} was ended by signal {killed_by}: it is started again")
        return True

    def _stop(self) -> None:
        if self._kill_at is None:
            self._stop_next()

    def _stop_next(self) -> None:
        """Stop the processes whose turn it is."""
        turn, now = self._next_turns.pop(0), time.monotonic()
        self._next_at, self._kill_at = now + TURN_S, now + GRACE_S
        self._send(signal.SIGTERM, (p for p in self._running() if self._turns[p.name] == turn))

    def _is_next_due(self) -> bool:
        """Return whether the processes of the turns before have ended, or had their time."""
        turn, running = self._next_turns[0], self._running()
        is_first = all(self._turns[process.name] >= turn for process in running)
        return is_first or time.monotonic() >= self._next_at

    def _running(self) -> "list[_Process]":
        return [process for process in self._processes.values() if not process.has_ended]

    def _send(self, number: signal.Signals, processes: "Iterable[_Process]") -> None:
        for process in processes:
            self._say(f"sending {number.name} to {process.name} (pid {process.pid})")
            process.send(number)

    def _say(self, text: str) -> None:
        self._printer.write(Message("line", f"{text}\n", datetime.now(), SYSTEM, None))


class _Process:
    """A process of an engine.

    It starts again on another machine when its own is gone, and where it is when it has to be told
    other addresses.
    """

    def __init__(
        self, name: str, engine: Engine, events: queue.Queue[Message], colour: str
    ) -> None:
        self.name = name
        self.has_ended = False
        self.group = 0
        self.restarted_at: deque[float] = deque(maxlen=MOST_RESTARTS)
        self._engine = engine
        self._events = events
        self._colour = colour
        self._starts = 0
        #: Guards the three: a signal is sent once, however early it is.
        self._lock = threading.Lock()
        self._has_started = False
        self._is_to_start_again = False
        self._is_stopping = False
        self._give_up_at = float("inf")

    @property
    def pid(self) -> str:
        """The number of its process group, and where that is."""
        return f"{self.group or '?'}{' at ' if self.host else ''}{self.host}"

    @property
    def host(self) -> str:
        """The address of its machine; empty for this one."""
        return self._engine.host(self.name)

    def begin(self) -> None:
        """Run it, in a thread."""
        threading.Thread(name=self.name, target=self._run, daemon=True).start()

    def send(self, number: int) -> None:
        """Stop it with a signal, for good."""
        if number == signal.SIGKILL:
            self._give_up_at = min(self._give_up_at, time.monotonic() + _KILL_S)
        with self._lock:
            self._is_stopping = True
            self._signal(number)

    def start_again(self) -> None:
        """Stop it, and start it with the addresses of then."""
        with self._lock:
            self._is_to_start_again = True
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if self._has_started:
            self._engine.signal(self.name, number)

    def _run(self) -> None:
        try:
            code = self._run_to_its_end()
        except Exception as error:  # Ray raises many kinds when all of it is gone
            self._say(f"lost: {type(error).__name__}: {error}")
            code = 1
        self._post("stop", code)

    def _run_to_its_end(self) -> int:
        has_moved = True
        while True:
            try:
                if not has_moved:
                    self._engine.move(self.name, lambda: not self._is_stopping)
                    has_moved = True
                code = self._run_once()
            except GivenUp:
                return -signal.SIGKILL
            except MachineIsGone as gone:
                if self._is_stopping:
                    return -signal.SIGKILL
                self._say(f"its machine, {self._engine.host(self.name)}, {gone}: it starts again")
                has_moved = False
                continue
            if not self._is_to_start_again or self._is_stopping:
                return code
            self._say("others have moved: it starts again, with their addresses")

    def _run_once(self) -> int:
        """Start it, pass its output on until it ends, and return its status."""
        with self._lock:
            self._has_started = self._is_to_start_again = False
        self._starts += 1
        self.group = self._engine.start(self.name, self._starts - 1)
        self._post("start", None)
        with self._lock:
            self._has_started = True
            if self._is_stopping or self._is_to_start_again:  # the signal was too early
                self._signal(signal.SIGTERM)
        while True:
            lines, code = self._engine.output(
                self.name, lambda: time.monotonic() < self._give_up_at
            )
            for line in lines:
                self._post("line", line)
            if code is not None:
                return code

    def _say(self, text: str) -> None:
        self._post("line", f"{text}\n".encode())

    def _post(self, kind: str, data: Any) -> None:
        self._events.put(Message(kind, data, datetime.now(), self.name, self._colour))


def _signal_that_ended(status: int) -> int | None:
    """Return the signal that has ended a process, if any did; a shell between adds 128 to it.

    A program may end by itself with such a status, after Ctrl-C for instance: of a shell's, only
    signals count that no program answers with an end of its own.
    """
    if status < 0:
        return -status
    return status - 128 if status - 128 in _FATAL else None

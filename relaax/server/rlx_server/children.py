"""The processes that the RLX server forks: started, counted, reaped, stopped; those that hang."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from relaax.server.rlx_server.tally import Cell, Row, Tally
from relaax.telemetry.logs import name_process

_log = logging.getLogger(__name__)

#: How long children may take to stop before they are killed.
STOP_DEADLINE_S = 7.0

#: The signals for children when the RLX server stops, when it stops with the training, and when it
#: will stop as soon as all clients have left.
STOP = signal.SIGTERM
END_OF_TRAINING = signal.SIGUSR1
DRAIN = signal.SIGUSR2

_STOP_SIGNALS = (signal.SIGINT, STOP, END_OF_TRAINING, DRAIN)


class Closable(Protocol):
    """A socket, a selector or the like."""

    def close(self) -> None:
        """Close this process' end."""


@dataclass(frozen=True)
class ExitedChild:
    """A child that has ended."""

    pid: int
    name: str
    #: Exit status, or minus the number of the signal that killed it.
    exit_code: int


class Children:
    """Forks functions into processes and owns those processes.

    A child ends with its function; with SIGTERM; and with its parent, however that died: the parent
    holds one end of a pipe, and the child stops when that end is closed. ``parents_own`` is closed
    in every child.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._parents_own: list[Closable] = []
        self._lifeline_read, self._lifeline_write = os.pipe()

    @property
    def pids(self) -> list[int]:
        """The processes that run."""
        return list(self._names)

    def fork(self, name: str, function: Callable[[], int], keeps: Closable | None = None) -> int:
        """Run ``function`` in a child, whose exit status it returns; return the child's pid.

        ``keeps`` is the parent's, and stays open in the child.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal that came before the child has its own handlers would run its parent's.
        allowed = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                self._run_child(name, function, allowed, keeps)
            self._names[pid] = name
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, allowed)
        return pid

    def parents_own(self, *opened: Closable) -> None:
        """Close these in every child that is forked from now on."""
        self._parents_own += opened

    def no_longer_open(self, closed: Closable) -> None:
        """Forget a file of the parent that is closed."""
        self._parents_own.remove(closed)

    def reap(self) -> list[ExitedChild]:
        """Collect the children that have ended; never waits."""
        ended = []
        for pid in self.pids:
            reaped, status = os.waitpid(pid, os.WNOHANG)
            if reaped:
                code = os.waitstatus_to_exitcode(status)
                ended.append(ExitedChild(pid, self._names.pop(pid), code))
        return ended

    def send_signal(self, pids: Iterable[int], number: signal.Signals) -> None:
        """Send a signal to the running ones of ``pids``."""
        for pid in pids:
            if pid in self._names:
                os.kill(pid, number)

    def wait(self, pids: Collection[int]) -> bool:
        """Wait for the end of ``pids``; return whether all of them ended in time."""
        deadline = time.monotonic() + STOP_DEADLINE_S
        while self._runs_any(pids) and time.monotonic() < deadline:
            self.reap()
            time.sleep(0.01)
        return not self._runs_any(pids)

    def stop(self, number: signal.Signals = STOP) -> None:
        """End all children, and close their ties to this process: none is forked after this."""
        self.end(self.pids, number)
        os.close(self._lifeline_read)
        os.close(self._lifeline_write)

    def end(self, pids: Collection[int], number: signal.Signals = STOP) -> None:
        """End ``pids``: ask with a signal, wait, and kill the rest."""
        self.send_signal(pids, number)
        if self.wait(pids):
            return
        for pid, name in self._names.items():
            if pid in pids:
                _log.warning("%s (pid %d) did not stop in %g s: killed", name, pid, STOP_DEADLINE_S)
        self.send_signal(pids, signal.SIGKILL)
        while self._runs_any(pids):
            self.reap()
            time.sleep(0.01)

    def _runs_any(self, pids: Collection[int]) -> bool:
        return any(pid in self._names for pid in pids)

    def _run_child(
        self,
        name: str,
        function: Callable[[], int],
        allowed_signals: set[int],
        keeps: Closable | None,
    ) -> None:
        """Never returns: a child must not fall back into its parent's loop."""
        exit_code = 1
        try:
            name_process(name)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which decides
            for number in (STOP, END_OF_TRAINING, DRAIN):
                signal.signal(number, _exit_on_signal)
            signal.pthread_sigmask(signal.SIG_SETMASK, allowed_signals)
            os.close(self._lifeline_write)
            for opened in self._parents_own:
                if opened is not keeps:
                    opened.close()
            threading.Thread(target=self._die_with_parent, daemon=True).start()
            exit_code = function()
        except SystemExit as stop:
            exit_code = stop.code if isinstance(stop.code, int) else 1
        except BaseException:
            _log.exception("%s failed", name)
        finally:
            _flush_quietly()
            os._exit(exit_code)

    def _die_with_parent(self) -> None:
        os.read(self._lifeline_read, 1)
        os._exit(0)


def _exit_on_signal(number: int, frame: object) -> None:
    # Not sys.exit: an exception raised inside a library written in C would be mangled there.
    os._exit(0)


def _flush_quietly() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            return


class WorkerPool:
    """Forks ``run`` into workers, each with the next of ``seeds`` and a row of ``tally``."""

    def __init__(
        self, children: Children, seeds: Iterator[int], tally: Tally, run: Callable[..., int]
    ) -> None:
        self.children = children
        self._seeds = seeds
        self._tally = tally
        self._run = run
        #: By pid: the worker's row.
        self._rows: dict[int, int | None] = {}

    @property
    def pids(self) -> list[int]:
        """The workers that run."""
        return list(self._rows)

    @property
    def turns(self) -> dict[int, float]:
        """When the turn of each worker began that goes on, by pid."""
        return {pid: self._tally.turn_began(row) for pid, row in self._rows.items()}

    def drain(self) -> None:
        """Let all connections go, each at the end of an episode."""
        self.children.send_signal(self.pids, DRAIN)

    def fork(self, name: str, *arguments: Any) -> int:
        """Call ``run`` with seed, row and ``arguments`` in a worker; OSError when that fails."""
        seed, number = next(self._seeds), self._tally.take()
        row = self._tally.row(number)
        try:
            pid = self.children.fork(name, lambda: self._run(seed, row, *arguments))
        except OSError:
            self._tally.give_back(number)
            raise
        self._rows[pid] = number
        return pid

    def give_back(self, pid: int) -> None:
        """Take back the row of a worker that has ended."""
        self._tally.give_back(self._rows.pop(pid))


#: After a longer pause between looks the server itself was stopped, for example by Ctrl-Z, and the
#: workers with it.
_STOPPED_S = 10.0


class Watchdog:
    """Compares how long turns last with ``timeout_s``.

    While the parameter server is away workers wait for it, and hang no more than it does: that time
    does not count.
    """

    def __init__(
        self, state: Row, timeout_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._state = state
        self.timeout_s = timeout_s
        self._clock = clock
        self._looked_at = self._count_from = clock()
        self._found: set[tuple[int, float]] = set()

    def hung(self, turns: Mapping[int, float]) -> list[int]:
        """Return the pids whose turn lasts too long, once for each turn.

        ``turns``: the begin of each; a worker that has not begun to serve is missing, or has 0. A
        killed worker may stay in it for a moment.
        """
        now = self._clock()
        if now - self._looked_at > _STOPPED_S:
            self._count_from = now
        self._looked_at = now
        away_at = self._state[Cell.PARAMETER_SERVER_WAS_AWAY]
        earliest = max(away_at, self._count_from)
        known = self._found
        self._found = {
            (pid, began)
            for pid, began in turns.items()
            if began > 0 and now - max(began, earliest) > self.timeout_s
        }
        return [pid for pid, _ in sorted(self._found - known)]

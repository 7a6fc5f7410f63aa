"""The process of an environment, and its reports to the parent."""

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from relaax.client.restarts import EnvironmentHangs, FailedTooOften
from relaax.client.simulator import EpisodeSummary, RunObserver, RunOutcome, RunResult
from relaax.errors import ConfigurationError, RelaaxError

#: How long the environments may take to close when the parent was killed.
_TIME_TO_CLOSE_S = 5.0


ProcessEvent: TypeAlias = tuple[str, tuple[Any, ...]]
"""Sent by a process: the name of a method of ``RunObserver``, and its arguments. The last one is
``END`` with the result of the run."""

END = "end"


@dataclass(frozen=True)
class Memory:
    """Memory that a process and its parent share."""

    #: How many steps were made: a counter that the parent reads.
    steps: Any
    #: Since when an environment is busy, by the monotonic clock; 0 if no environment is.
    busy_since: Any
    #: An environment that is busy for more seconds has failed; None for never.
    timeout_s: float | None = None
    #: How often the process was started again, and how many episodes it had played.
    restarts: int = 0
    episodes: int = 0


class ProcessReport(RunObserver):
    """Reports the events of this process's environments to its parent.

    pipe: takes the events. ``memory`` is read by the parent.
    """

    def __init__(self, pipe: "Connection[ProcessEvent, Any]", memory: Memory) -> None:
        self._pipe = pipe
        self._memory = memory
        self.restarts, self.episodes_before = memory.restarts, memory.episodes
        self.steps, self.episodes = memory.steps.value, memory.episodes
        self.may_exit = False

    def environment_begins(self) -> None:
        """Note since when the environment is busy."""
        self._memory.busy_since.value = time.monotonic()

    def environment_returned(self) -> None:
        """Note that it is not any more, and for how long it was."""
        since = self._memory.busy_since.value
        if since:
            self.environment_s += time.monotonic() - since
        self._memory.busy_since.value = 0.0

    def interrupt(self) -> None:
        """Raise EnvironmentHangs where an environment is late: it may have returned meanwhile."""
        since, timeout_s = self._memory.busy_since.value, self._memory.timeout_s
        if timeout_s is not None and since and time.monotonic() - since >= timeout_s:
            raise EnvironmentHangs(
                f"it has not returned for {timeout_s:g} s (--environment-timeout)"
            )

    def on_restart(self, message: str) -> None:
        """Send the message."""
        self._send("on_restart", message)

    def on_lost(self, message: str) -> None:
        """Send the message."""
        self._send("on_lost", message)

    def on_doubt(self, message: str) -> None:
        """Send the message."""
        self._send("on_doubt", message)

    def on_connected(self) -> None:
        """Report that there is a session."""
        self._send("on_connected")

    def on_disconnected(self) -> None:
        """Report that the session is lost."""
        self._send("on_disconnected")

    def on_step(self, count: int = 1) -> None:
        """Count steps."""
        self.steps += count
        self._memory.steps.value = self.steps

    def on_episode(self, summary: EpisodeSummary) -> None:
        """Send the summary."""
        self.episodes += 1
        self._send("on_episode", summary)

    def _send(self, event: str, *arguments: Any) -> None:
        """Send an event; end this process, as after SIGTERM, if its parent was killed."""
        try:
            self._pipe.send((event, arguments))
        except BrokenPipeError:
            sys.exit(0)


ProcessTask: TypeAlias = Callable[[int, RunObserver], RunResult]
"""The task of a process, given its index; pickled, to reach the new process."""


def run_task(
    task: ProcessTask, index: int, pipe: "Connection[ProcessEvent, Any]", memory: Memory
) -> None:
    """Do ``task`` in this process, which was started for it, and report its end.

    SIGALRM interrupts a late environment, where that signal exists.
    """
    report = ProcessReport(pipe, memory)
    # A terminal sends SIGINT to this process too: the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, partial(_exit, report))
    if (alarm := alarm_signal()) is not None:
        signal.signal(alarm, lambda number, frame: report.interrupt())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # The parent shows how many environments wait for a server.
    logging.getLogger("relaax.client").setLevel(logging.ERROR)
    result = _result_of(task, index, report)
    report.environment_returned()
    # Nothing is left that has to be closed in order.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(BrokenPipeError):
        pipe.send((END, (result,)))


def alarm_signal() -> int | None:
    """Return the signal that interrupts a late environment; None on Windows."""
    return getattr(signal, "SIGALRM", None)


def _result_of(task: ProcessTask, index: int, report: ProcessReport) -> RunResult:
    try:
        return task(index, report)
    except ConfigurationError as error:  # the environment cannot be used as it is
        return RunResult(RunOutcome.UNUSABLE, str(error))
    except FailedTooOften as error:
        return RunResult(RunOutcome.FAILED_TOO_OFTEN, str(error))
    except RelaaxError as error:
        return RunResult(RunOutcome.FAILED, str(error))
    except Exception as error:  # the parent decides, and the other processes go on
        traceback.print_exc()
        return RunResult(RunOutcome.FAULT, f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    """Wait until the parent has ended, and end this process: a parent that is killed cannot."""
    parent = multiprocessing.parent_process()
    if parent is None:  # this is no child
        return
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_TIME_TO_CLOSE_S)
    os._exit(0)


def _exit(report: ProcessReport, signal_number: int, frame: object) -> None:
    report.may_exit = True
    sys.exit(0)

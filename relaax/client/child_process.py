"""What happens in an environment process, and what it reports to its parent."""

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
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from relaax.client.run_result import RunOutcome, RunResult
from relaax.client.simulator import EpisodeSummary, RunObserver
from relaax.errors import ConfigurationError, RelaaxError

#: How long the environments may take to close when the parent was killed.
_TIME_TO_CLOSE_S = 5.0

ProcessEvent: TypeAlias = bool | EpisodeSummary | RunResult
"""What a process sends: whether it is connected, an episode that is over, how its run ended."""


class ProcessReport(RunObserver):
    """Reports what the environments of a process do to its parent.

    pipe: where events go. steps: a counter in memory that the parent reads.
    """

    def __init__(self, pipe: "Connection[ProcessEvent, Any]", steps: Any) -> None:
        self._pipe = pipe
        self._steps = steps

    def on_connected(self) -> None:
        """Report that there is a session."""
        self._send(True)

    def on_disconnected(self) -> None:
        """Report that the session is lost."""
        self._send(False)

    def on_step(self, count: int = 1) -> None:
        """Count steps."""
        self._steps.value += count

    def on_episode(self, summary: EpisodeSummary) -> None:
        """Send the summary."""
        self._send(summary)

    def _send(self, event: ProcessEvent) -> None:
        """Send an event; end this process, as after SIGTERM, if its parent was killed."""
        try:
            self._pipe.send(event)
        except BrokenPipeError:
            sys.exit(0)


ProcessTask: TypeAlias = Callable[[int, RunObserver], RunResult]
"""What a process does, given its index; pickled, to reach the new process."""


def run_task(
    task: ProcessTask, index: int, pipe: "Connection[ProcessEvent, Any]", steps: Any
) -> None:
    """Do ``task`` in this process, which was started for it, and report how it ended."""
    # A terminal sends SIGINT to this process too: the parent decides what follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _exit)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # The parent shows how many environments wait for a server.
    logging.getLogger("relaax.client").setLevel(logging.ERROR)
    result = _result_of(task, index, ProcessReport(pipe, steps))
    # Nothing is left that has to be closed in order.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(BrokenPipeError):
        pipe.send(result)


def _result_of(task: ProcessTask, index: int, report: ProcessReport) -> RunResult:
    try:
        return task(index, report)
    except ConfigurationError as error:  # the environment cannot be used as it is
        return RunResult(RunOutcome.UNUSABLE, str(error))
    except RelaaxError as error:
        return RunResult(RunOutcome.FAILED, str(error))
    except Exception as error:  # the parent reports it, and the other processes go on
        traceback.print_exc()
        return RunResult(RunOutcome.FAILED, f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    """Wait until the parent has ended, and end this process: a parent that is killed cannot."""
    parent = multiprocessing.parent_process()
    if parent is None:  # this is no child
        return
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_TIME_TO_CLOSE_S)
    os._exit(0)


def _exit(signal_number: int, frame: object) -> None:
    sys.exit(0)

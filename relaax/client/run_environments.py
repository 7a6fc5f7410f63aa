"""Runs environments in processes until they end, and shows how far they are."""

import contextlib
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from relaax.client.child_process import ProcessTask
from relaax.client.environment_processes import EnvironmentProcesses
from relaax.client.run_options import RunOptions
from relaax.client.run_progress import ProgressDisplay, RunProgress
from relaax.client.simulator import RunOutcome, RunResult
from relaax.client.transport import is_in_one_process
from relaax.errors import ConfigurationError

_INTERVAL_S = 1.0

_log = logging.getLogger(__name__)

_POLL_S = 0.2


class HealthFile:
    """Touches ``path`` while environments make steps, or wait for a server.

    The file grows old if environments are connected and none makes a step, or if the program hangs.
    ConfigurationError if it cannot be written at the beginning. Later failures, for example of a
    full disk, do not end the environments: one warning is logged.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._steps = 0
        self._has_warned = False
        self._next = clock() + _INTERVAL_S
        try:
            path.touch()
        except OSError as error:
            raise ConfigurationError(f"--health-file {path} cannot be written: {error}") from error

    def refresh(self, progress: RunProgress) -> None:
        """Touch the file, once a second at most, if there is a reason to."""
        if self._clock() < self._next:
            return
        self._next = self._clock() + _INTERVAL_S
        if progress.connected == 0 or progress.steps != self._steps:
            self._steps = progress.steps
            try:
                self._path.touch()
            except OSError as error:
                if not self._has_warned:
                    self._has_warned = True
                    _log.warning(
                        "the health file %s cannot be touched any more: %s", self._path, error
                    )


def conclude(
    results: Sequence[RunResult], server: str, *, was_connected: bool, was_stopped: bool
) -> int:
    """Print how a run with these ``results`` ended and return the exit status.

    0: the episodes or the training are over, the run was stopped, or the server stopped answering
    after a session (in version 1 it closes when the training is over). 1: the server was never
    reached, or an error ended a process. 2: an environment cannot be made or used. A lost
    environment is an error if the others have not played on to the end of the training.
    """
    if was_stopped:
        print("stopped")
        return 0
    played_on = _with(RunOutcome.TRAINING_OVER, results) or _with(RunOutcome.SERVER_LOST, results)
    failures = [RunOutcome.FAILED, RunOutcome.FAULT]
    if not played_on:
        failures.insert(0, RunOutcome.FAILED_TOO_OFTEN)
    for outcome, status in ((RunOutcome.UNUSABLE, 2), *((failure, 1) for failure in failures)):
        if _with(outcome, results):
            _complain(outcome, results)
            return status
    if _with(RunOutcome.TRAINING_OVER, results):
        print(f"the RLX server at {server} says that the training is over")
        return 0
    if was_connected:
        if _with(RunOutcome.SERVER_LOST, results):
            print(
                f"the RLX server at {server} does not answer any more: it has died, or the "
                "training is over"
            )
        return 0
    print(f"there was never a session with the RLX server at {server}", file=sys.stderr)
    _complain(RunOutcome.UNREACHED, results)
    return 1


def _with(outcome: RunOutcome, results: Sequence[RunResult]) -> list[RunResult]:
    return [result for result in results if result.outcome is outcome]


def _complain(outcome: RunOutcome, results: Sequence[RunResult]) -> None:
    """Print each message once, on a line of its own."""
    messages = {" ".join(result.message.split()) for result in _with(outcome, results)}
    for message in sorted(messages):
        print(message, file=sys.stderr)


Options = TypeVar("Options", bound=RunOptions)


def fitting_this_process(options: Options) -> Options:
    """Return ``options`` with one environment if a server is in this process.

    Environments on connections of their own would be played one after the other there, and the
    first one ends with the training. The one environment plays all episodes. A warning is logged.
    """
    if not is_in_one_process() or options.environments == 1:
        return options
    _log.warning("one process plays one environment: --count %d is not followed", options.count)
    return replace(options, count=1)


def run_environments(task: ProcessTask, options: RunOptions) -> int:
    """Do ``task`` in a process for each connection and return the exit status.

    With a server in this process (``relaax.client.transport.connecting_by``) only the task of the
    first connection is done, in this process: see ``fitting_this_process``. ``conclude`` gives
    the status. SIGINT and SIGTERM end the processes, and so does an environment that cannot be
    made or used. If an environment has failed too often, it is lost and the others play on.
    """
    sizes = [len(numbers) for numbers in options.connections]
    if is_in_one_process():
        return _run_here(task, sizes[0], options)
    progress = RunProgress(sum(sizes))
    display = ProgressDisplay(progress, sys.stdout)
    health = None if options.health_file is None else HealthFile(options.health_file)
    timeout_s = options.environment_timeout_s
    watched = EnvironmentProcesses(task, sizes, progress, options.env, timeout_s)
    with _stop_signals() as signals, watched as processes:
        while processes.is_running and not signals and not processes.has(RunOutcome.UNUSABLE):
            processes.listen(_POLL_S)
            display.refresh()
            if health is not None:
                health.refresh(progress)
    if not processes.has(RunOutcome.UNUSABLE):
        display.finish()
    _show_summary(progress, options)
    return conclude(
        processes.results,
        options.rlx_server,
        was_connected=progress.was_connected,
        was_stopped=bool(signals),
    )


def _run_here(task: ProcessTask, size: int, options: RunOptions) -> int:
    """Run the first task in this process; exceptions propagate."""
    progress = RunProgress(size)
    try:
        result = task(0, progress)
    finally:  # Ctrl-C ends an evaluation, too
        _show_summary(progress, options)
    was_connected = progress.was_connected
    return conclude([result], options.rlx_server, was_connected=was_connected, was_stopped=False)


def _show_summary(progress: RunProgress, options: RunOptions) -> None:
    """Print the returns of an evaluation."""
    if options.evaluate is not None and progress.episodes:
        print(progress.summary(), flush=True)


@contextlib.contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Yield a list to which SIGINT and SIGTERM are added when they come."""
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda n, _: received.append(n)) for number in numbers]
    try:
        yield received
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)

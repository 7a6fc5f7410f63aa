"""Runs environments in processes until they end, and shows how far they are."""

import contextlib
import logging
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from relaax.client.child_process import ProcessTask
from relaax.client.conclusion import conclude
from relaax.client.environment_processes import EnvironmentProcesses
from relaax.client.health_file import HealthFile
from relaax.client.observer import EpisodeSummary, RunObserver
from relaax.client.run_options import RunOptions
from relaax.client.run_progress import ProgressDisplay, RunProgress
from relaax.client.run_result import RunOutcome
from relaax.client.transport import is_in_one_process

_log = logging.getLogger(__name__)

_POLL_S = 0.2

Options = TypeVar("Options", bound=RunOptions)


def fitting_this_process(options: Options) -> Options:
    """Return ``options``; of one environment, where a server is in this process.

    There environments of connections of their own would have to be played one after the other, and
    the first one ends with the training. It plays all episodes. A warning says so.
    """
    if not is_in_one_process() or options.environments == 1:
        return options
    _log.warning("one process plays one environment: --count %d is not followed", options.count)
    return options.of_one_environment()


def run_environments(
    task: ProcessTask,
    sizes: Sequence[int],
    server: str,
    evaluates: bool = False,
    health_file: Path | None = None,
) -> int:
    """Do ``task`` in a process for each of ``sizes`` and return the exit status.

    With a server in this process (``relaax.client.transport.connecting_by``) it is done here
    instead, as far as the first of ``sizes`` goes: see ``fitting_this_process``.

    sizes: how many environments each process has. server: its address, for messages. evaluates:
    whether what the episodes came to is shown at the end. health_file: what ``HealthFile`` touches.

    The status is that of ``conclude``. SIGINT and SIGTERM end the processes, and so does an
    environment that cannot be made or used.
    """
    if is_in_one_process():
        return _run_here(task, sizes[0], server, evaluates)
    progress = RunProgress(sum(sizes))
    display = ProgressDisplay(progress, sys.stdout)
    health = None if health_file is None else HealthFile(health_file)
    with _stop_signals() as signals, EnvironmentProcesses(task, sizes, progress) as processes:
        while processes.is_running and not signals and not processes.has(RunOutcome.UNUSABLE):
            processes.listen(_POLL_S)
            display.refresh()
            if health is not None:
                health.refresh(progress)
    if not processes.has(RunOutcome.UNUSABLE):
        display.finish()
    if evaluates:
        _show_summary(progress)
    return conclude(
        processes.results,
        server,
        was_connected=processes.was_connected,
        was_stopped=bool(signals),
    )


def _run_here(task: ProcessTask, size: int, server: str, evaluates: bool) -> int:
    """Do the share of the first process in this one; what it raises is raised."""
    observer = _Counting(RunProgress(size))
    try:
        result = task(0, observer)
    finally:  # Ctrl-C ends an evaluation, too
        if evaluates:
            _show_summary(observer.progress)
    return conclude([result], server, was_connected=observer.was_connected, was_stopped=False)


def _show_summary(progress: RunProgress) -> None:
    if progress.episodes:
        print(progress.summary(), flush=True)


class _Counting(RunObserver):
    """Counts episodes, and remembers whether there was a session."""

    def __init__(self, progress: RunProgress) -> None:
        self.progress = progress
        self.was_connected = False

    def on_connected(self) -> None:
        """Take note of it."""
        self.was_connected = True

    def on_episode(self, summary: EpisodeSummary) -> None:
        """Count it."""
        self.progress.add_episode(summary)


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

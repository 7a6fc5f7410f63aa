"""Runs environments in processes until they end, and shows how far they are."""

import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence

from relaax.client.child_process import ProcessTask
from relaax.client.conclusion import conclude
from relaax.client.environment_processes import EnvironmentProcesses
from relaax.client.run_progress import ProgressDisplay, RunProgress
from relaax.client.run_result import RunOutcome

_POLL_S = 0.2


def run_environments(
    task: ProcessTask, sizes: Sequence[int], server: str, evaluates: bool = False
) -> int:
    """Do ``task`` in a process for each of ``sizes`` and return the exit status.

    sizes: how many environments each process has. server: its address, for messages. evaluates:
    whether what the episodes came to is shown at the end.

    The status is that of ``conclude``. SIGINT and SIGTERM end the processes, and so does an
    environment that cannot be made or used.
    """
    progress = RunProgress(sum(sizes))
    display = ProgressDisplay(progress, sys.stdout)
    with _stop_signals() as signals, EnvironmentProcesses(task, sizes, progress) as processes:
        while processes.is_running and not signals and not processes.has(RunOutcome.UNUSABLE):
            processes.listen(_POLL_S)
            display.refresh()
    if not processes.has(RunOutcome.UNUSABLE):
        display.finish()
    if evaluates and progress.episodes:
        print(progress.summary(), flush=True)
    return conclude(
        processes.results,
        server,
        was_connected=processes.was_connected,
        was_stopped=bool(signals),
    )


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

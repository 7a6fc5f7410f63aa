"""Tasks that are done from time to time."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from relaax.processes.stop_signal import Stop

#: How often it is looked whether something is due, and whether the training is over.
POLL_S = 0.1


@dataclass
class Task:
    """A task that is done every so many seconds."""

    interval_s: float
    do: Callable[[], object]
    due: float = field(default=0.0)


def run_tasks(
    tasks: Sequence[Task],
    stop: Stop,
    is_over: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Do each of ``tasks`` when it is due until ``stop`` is set or ``is_over``."""
    begin_tasks(tasks, clock)
    while not stop.wait(POLL_S) and not is_over():
        do_due(tasks, clock)


def begin_tasks(tasks: Sequence[Task], clock: Callable[[], float] = time.monotonic) -> None:
    """Let the intervals of ``tasks`` begin now."""
    for task in tasks:
        task.due = clock() + task.interval_s


def do_due(tasks: Sequence[Task], clock: Callable[[], float] = time.monotonic) -> None:
    """Do each of ``tasks`` that is due."""
    for task in tasks:
        now = clock()
        if now >= task.due:
            task.do()
            task.due = now + task.interval_s


class TasksThread:
    """Does each of ``tasks`` when it is due, on a thread of its own: they may take long."""

    def __init__(self, tasks: Sequence[Task], name: str) -> None:
        self._stops = threading.Event()
        self._thread = threading.Thread(
            target=run_tasks, args=(tasks, self._stops, lambda: False), name=name
        )
        self._thread.start()

    def stop(self) -> None:
        """Begin no further round of tasks; a running one ends in its own time."""
        self._stops.set()

    def close(self) -> None:
        """Stop, and wait until nothing is done any more."""
        self.stop()
        self._thread.join()

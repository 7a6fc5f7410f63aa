"""Whether there is memory for another worker."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import psutil

MIB = 1024 * 1024

#: A worker younger than this may still grow: its model is being built and compiled.
GROWTH_S = 10.0

MEMORY_IS_FRESH_S = 2.0


@dataclass(frozen=True)
class WorkerMemory:
    """What one worker owns."""

    #: Bytes that would be free again if it ended.
    private_bytes: int
    age_s: float


@dataclass(frozen=True)
class Decision:
    """Whether a connection is admitted, with the figures behind it."""

    is_admitted: bool
    available_bytes: int
    needed_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.available_bytes / MIB:.0f} MiB of memory are available "
            f"and a worker needs {self.needed_bytes / MIB:.0f} MiB"
        )


def decide(
    available_bytes: int, workers: Iterable[WorkerMemory], first_worker_bytes: int
) -> Decision:
    """Compare the available memory with the mean memory of the workers that run.

    Seed 003, section "RLX Server". Memory that a parent and its children share counts once, by
    being left out; ``available_bytes`` does not count swap. While no worker is grown up,
    ``first_worker_bytes`` stands for the mean; what young workers are still expected to take is
    held back, so that a burst of connections cannot pass before the first of them has grown.
    """
    everybody = list(workers)
    grown = [worker.private_bytes for worker in everybody if worker.age_s >= GROWTH_S]
    needed = sum(grown) // len(grown) if grown else first_worker_bytes
    held_back = sum(
        max(0, needed - worker.private_bytes) for worker in everybody if worker.age_s < GROWTH_S
    )
    left = available_bytes - held_back
    return Decision(left >= needed, left, needed)


class Admission:
    """Measures this machine and decides.

    Measuring a process takes milliseconds, so a figure is used again for ``MEMORY_IS_FRESH_S``.
    """

    def __init__(self, first_worker_mib: float) -> None:
        self._first_worker_bytes = int(first_worker_mib * MIB)
        self._measured: dict[int, WorkerMemory] = {}
        self._measured_at = 0.0

    def decide(self, worker_pids: Iterable[int]) -> Decision:
        """Decide about one more worker beside those that run."""
        memories = (self._memory_of(pid) for pid in worker_pids)
        return decide(
            psutil.virtual_memory().available,
            [memory for memory in memories if memory is not None],
            self._first_worker_bytes,
        )

    def _memory_of(self, pid: int) -> WorkerMemory | None:
        if time.monotonic() - self._measured_at >= MEMORY_IS_FRESH_S:
            self._measured.clear()
            self._measured_at = time.monotonic()
        if pid not in self._measured:
            memory = measure(pid)
            if memory is None:
                return None
            self._measured[pid] = memory
        return self._measured[pid]


def measure(pid: int, now: Callable[[], float] = time.time) -> WorkerMemory | None:
    """Return the memory of a process; None when it has just ended, or may not be looked at."""
    try:
        process = psutil.Process(pid)
        private_bytes: int = process.memory_full_info().uss
        return WorkerMemory(private_bytes, now() - process.create_time())
    except psutil.Error:
        return None

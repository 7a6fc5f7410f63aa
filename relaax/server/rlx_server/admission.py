"""Whether there is memory for another connection.

Seed 003, section "RLX Server": the available memory is compared with the mean memory of the served
connections. Memory that a parent and its children share is left out; the available memory does not
count swap. In a container its limit counts, too.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import psutil

from relaax.processes.available_memory import AvailableMemory

MIB = 1024 * 1024

#: A connection younger than this may still grow: a model is being built, rollouts fill.
GROWTH_S = 10.0

MEMORY_IS_FRESH_S = 2.0

#: The same part of the available memory; the growth of new connections is held back anyway.
AVAILABLE_IS_FRESH_S = 0.1

#: Less than this is not believed of an environment of a shared worker.
LEAST_SHARE_BYTES = 64 * 1024

#: Costs are measured while there are so many times as many environments as young ones.
MOSTLY_GROWN = 10


@dataclass(frozen=True)
class WorkerMemory:
    """Memory that one worker owns."""

    #: Bytes that would be free again if it ended.
    private_bytes: int
    age_s: float


@dataclass(frozen=True)
class AdmissionDecision:
    """Whether a connection is admitted, with the figures behind it."""

    is_admitted: bool
    #: Less than nothing, where more is held back than there is.
    available_bytes: int
    needed_bytes: int

    def __str__(self) -> str:
        return (
            f"{max(0, self.available_bytes) / MIB:.0f} MiB of memory are available "
            f"and a connection needs {in_mib(self.needed_bytes)} MiB"
        )


def decide(
    available_bytes: int, workers: Iterable[WorkerMemory], first_worker_bytes: int
) -> AdmissionDecision:
    """Compare the available memory with the mean memory of the workers, one for each connection.

    While no worker is grown up, ``first_worker_bytes`` stands for the mean; the expected growth of
    young workers is held back, so that a burst of connections cannot pass before the first of them
    has grown.
    """
    all_workers = list(workers)
    grown = [worker.private_bytes for worker in all_workers if worker.age_s >= GROWTH_S]
    needed = sum(grown) // len(grown) if grown else first_worker_bytes
    held_back = sum(
        max(0, needed - worker.private_bytes) for worker in all_workers if worker.age_s < GROWTH_S
    )
    left = available_bytes - held_back
    return AdmissionDecision(left >= needed, left, needed)


def decide_share(
    available_bytes: int, cost_bytes: int, young_environments: int
) -> AdmissionDecision:
    """Compare the available memory with the cost of one more environment of a shared worker.

    The expected growth of new environments is held back.
    """
    left = available_bytes - cost_bytes * young_environments
    return AdmissionDecision(left >= cost_bytes, left, cost_bytes)


class WorkerAdmission:
    """Measures this machine and decides, for a worker for each connection.

    Measuring a process takes milliseconds, so a figure is used again for ``MEMORY_IS_FRESH_S``.
    """

    def __init__(self, first_worker_mib: float) -> None:
        self._first_worker_bytes = int(first_worker_mib * MIB)
        self._memory = ProcessMemory()
        self._available = AvailableMemory(fresh_s=AVAILABLE_IS_FRESH_S)

    def decide(self, worker_pids: Iterable[int]) -> AdmissionDecision:
        """Decide about one more worker."""
        memories = (self._memory.of(pid) for pid in worker_pids)
        return decide(
            self._available.bytes(),
            [memory for memory in memories if memory is not None],
            self._first_worker_bytes,
        )


@dataclass(frozen=True)
class Sharing:
    """A shared worker, and how many environments it serves."""

    pid: int
    environments: int


class ShareAdmission:
    """Measures this machine and decides, for connections that share workers.

    The cost of an environment is the workers' memory beyond their memory without any, divided by
    their environments. It is measured while nearly all of these have had the time to grow;
    ``first_connection_mib`` stands for it before.
    """

    def __init__(
        self,
        first_connection_mib: float,
        clock: Callable[[], float] = time.monotonic,
        memory_of: Callable[[int], WorkerMemory | None] | None = None,
    ) -> None:
        self._cost_bytes = int(first_connection_mib * MIB)
        self._memory_of = memory_of or ProcessMemory().of
        self._available = AvailableMemory(fresh_s=AVAILABLE_IS_FRESH_S)
        self._clock = clock
        #: By pid: the memory of a worker when it was ready, and had no environment.
        self._empty_bytes: dict[int, int] = {}
        #: Environments of all workers: when there were how many, for the last ``GROWTH_S``.
        self._history: deque[tuple[float, int]] = deque([(clock(), 0)])

    def decide(self, workers: Iterable[Sharing]) -> AdmissionDecision:
        """Decide about one more connection."""
        environments = grown_bytes = 0
        for worker in workers:
            environments += worker.environments
            grown_bytes += self._grown_bytes(worker)
        young = max(0, environments - self._count_of_grown(environments))
        if environments > MOSTLY_GROWN * young:
            self._cost_bytes = max(grown_bytes // environments, LEAST_SHARE_BYTES)
        return decide_share(self._available.bytes(), self._cost_bytes, young)

    def forget(self, pid: int) -> None:
        """Take note that a worker has ended."""
        self._empty_bytes.pop(pid, None)

    def _count_of_grown(self, environments: int) -> int:
        """Note how many environments there are now; return how many there were a while ago."""
        now = self._clock()
        self._history.append((now, environments))
        while len(self._history) > 1 and now - self._history[1][0] >= GROWTH_S:
            self._history.popleft()
        then, count = self._history[0]
        return count if now - then >= GROWTH_S else 0

    def _grown_bytes(self, worker: Sharing) -> int:
        memory = self._memory_of(worker.pid)
        if memory is None:
            return 0
        if worker.environments == 0 or worker.pid not in self._empty_bytes:
            self._empty_bytes[worker.pid] = memory.private_bytes
        return max(0, memory.private_bytes - self._empty_bytes[worker.pid])


class ProcessMemory:
    """Measures processes, each at most once in ``MEMORY_IS_FRESH_S`` seconds."""

    def __init__(self) -> None:
        self._measured: dict[int, WorkerMemory] = {}
        self._measured_at = 0.0

    def of(self, pid: int) -> WorkerMemory | None:
        """Return the memory of a process; None when it has just ended."""
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


def in_mib(size: int) -> str:
    """Return a size for people; a small one has no more than two digits."""
    return f"{size / MIB:.0f}" if size >= 10 * MIB else f"{size / MIB:.2g}"

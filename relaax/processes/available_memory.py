"""How much memory this process may still take: of the machine, and of the container it runs in.

A container's limit is one of its cgroup, or of a cgroup around that; the kernel kills processes
beyond it, however much the machine has left.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from relaax.processes.cgroups import cgroups_of


@dataclass(frozen=True)
class _Names:
    """The names of a version's files."""

    limit: str
    usage: str
    #: Memory that the kernel takes back when it needs room: of files that were read, and are not in
    #: use.
    reclaimable: str


_V1 = _Names("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = _Names("memory.max", "memory.current", "inactive_file")


@dataclass(frozen=True)
class MemoryGroup:
    """A cgroup that may limit the memory of this process."""

    directory: Path
    names: _Names

    def left_bytes(self) -> int | None:
        """Return how much may still be taken; None without a limit."""
        with suppress(OSError, ValueError):  # "max", or the cgroup has gone
            limit = int((self.directory / self.names.limit).read_text())
            used = int((self.directory / self.names.usage).read_text())
            return max(0, limit - used + self._reclaimable_bytes())
        return None

    def _reclaimable_bytes(self) -> int:
        for line in (self.directory / "memory.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == self.names.reclaimable:
                return int(value)
        return 0


class AvailableMemory:
    """The machine's free memory, or the least that one of the process's cgroups leaves.

    The cgroups are those of the process when this is made. To read all their files takes longer
    than to take a connection: a figure is used again for ``fresh_s``.
    """

    def __init__(
        self,
        proc: Path = Path("/proc"),
        fresh_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._groups = memory_groups(proc / "self")
        self._fresh_s = fresh_s
        self._clock = clock
        self._bytes = 0
        self._read_at = -math.inf

    def bytes(self) -> int:
        """Return how much may still be taken."""
        now = self._clock()
        if now - self._read_at >= self._fresh_s:
            self._bytes, self._read_at = self._read(), now
        return self._bytes

    def _read(self) -> int:
        machine: int = psutil.virtual_memory().available
        left = [group.left_bytes() for group in self._groups]
        return min([machine, *(each for each in left if each is not None)])


def memory_groups(process: Path) -> Sequence[MemoryGroup]:
    """Return the cgroup that a process is in, and those around it; ``process`` is in /proc."""
    return [
        MemoryGroup(group.directory, _V2 if group.is_version_2 else _V1)
        for group in cgroups_of("memory", process)
    ]

"""How much memory this process may still take: of the machine, and of the container it runs in.

A container's limit is one of its cgroup, or of a cgroup around that; the kernel kills processes
beyond it, however much the machine has left.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from relaax.processes.cgroups import Cgroup, cgroups_of

#: By whether a cgroup is one of version 2: the files of its limit and usage, and the name of memory
#: that the kernel takes back when it needs room: of files that were read, and are not in use.
_NAMES = {
    False: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    True: ("memory.max", "memory.current", "inactive_file"),
}


def _left_bytes(group: Cgroup) -> int | None:
    """Return how much memory a cgroup's processes may still take; None without a limit."""
    limit_file, usage_file, reclaimable = _NAMES[group.is_version_2]
    with suppress(OSError, ValueError):  # "max", or the cgroup has gone
        limit = int((group.directory / limit_file).read_text())
        used = int((group.directory / usage_file).read_text())
        stat = (group.directory / "memory.stat").read_text()
        parts = dict(line.partition(" ")[::2] for line in stat.splitlines())
        return max(0, limit - used + int(parts.get(reclaimable, 0)))
    return None


class AvailableMemory:
    """The machine's free memory, or the least that one of the process's cgroups leaves.

    The cgroups of the process are found when this is made. To read all their files takes longer
    than to take a connection: a figure is used again for ``fresh_s``.
    """

    def __init__(
        self,
        proc: Path = Path("/proc"),
        fresh_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._groups = cgroups_of("memory", proc / "self")
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
        left = [_left_bytes(group) for group in self._groups]
        return min([machine, *(each for each in left if each is not None)])

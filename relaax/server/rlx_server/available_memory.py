"""How much memory this process may still take: of the machine, and of the container it runs in.

A container's limit is one of its cgroup, or of a cgroup around that; the kernel kills what goes
beyond it, however much the machine has left. Both versions of cgroups are read, as the kernel
documents them: https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.max, memory.current,
memory.stat) and https://docs.kernel.org/admin-guide/cgroup-v1/memory.html.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil


@dataclass(frozen=True)
class _Names:
    """What the files of a version are called."""

    limit: str
    usage: str
    #: What the kernel takes back when it needs room: files that were read, and are not in use.
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
        with suppress(OSError, ValueError):  # it says "max", or has gone
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
    """What the machine has left, or the least that one of the process's cgroups leaves.

    The cgroups are those that it is in when this is made. To read all their files takes longer than
    to take a connection: a figure is used again for ``fresh_s``.
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
    try:
        mounts = list(_mounts((process / "mountinfo").read_text()))
        memberships = (process / "cgroup").read_text().splitlines()
    except OSError:  # not Linux, or /proc is hidden
        return []
    groups = []
    for line in memberships:
        _, controllers, path = line.split(":", 2)
        names = _V2 if not controllers else _V1
        if controllers and "memory" not in controllers.split(","):
            continue
        for mount in mounts:
            if mount.names == names:
                groups += [MemoryGroup(place, names) for place in mount.places(path)]
    return groups


@dataclass(frozen=True)
class _Mount:
    """Where a hierarchy of cgroups can be seen."""

    #: The cgroup that is seen at ``point``.
    root: str
    point: Path
    names: _Names

    def places(self, path: str) -> Iterator[Path]:
        """Yield the directories of the cgroup ``path`` and those around it, as far as seen."""
        within = PurePosixPath(path)
        with suppress(ValueError):  # the mount shows another part of the hierarchy
            within = within.relative_to(self.root)
        place = self.point / within.relative_to(within.anchor)
        while True:
            yield place
            if place == self.point:
                return
            place = place.parent


def _mounts(mountinfo: str) -> Iterator[_Mount]:
    """Yield the mounts of cgroups with memory in them; see proc_pid_mountinfo(5)."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split(" ")[3:5]
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            yield _Mount(root, Path(point), _V2)
        elif kind == "cgroup" and "memory" in options.split(","):
            yield _Mount(root, Path(point), _V1)

"""The limits of a container, which its cgroups have, and the cores that they leave.

Both versions are read, as the kernel documents them:
https://docs.kernel.org/admin-guide/cgroup-v2.html and
https://docs.kernel.org/admin-guide/cgroup-v1/index.html. A limit is one of its cgroup, or of a
cgroup around that.
"""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

#: The kernel's files about this process.
OWN_PROCESS = Path("/proc/self")


@dataclass(frozen=True)
class Cgroup:
    """A cgroup that may limit this process."""

    directory: Path
    is_version_2: bool


def cgroups_of(controller: str, process: Path = OWN_PROCESS) -> list[Cgroup]:
    """Return the cgroup with this controller that a process is in, and those around it.

    ``process`` is its directory in /proc. Nothing where the system has no cgroups, or hides them.
    """
    try:
        mounts = list(_mounts((process / "mountinfo").read_text(), controller))
        memberships = (process / "cgroup").read_text().splitlines()
    except OSError:  # not Linux, or /proc is hidden
        return []
    found = []
    for line in memberships:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for mount in mounts:
            if mount.is_version_2 == (not controllers):
                found += [Cgroup(place, mount.is_version_2) for place in mount.places(path)]
    return found


@dataclass(frozen=True)
class _Mount:
    """Where a hierarchy of cgroups can be seen."""

    #: The cgroup that is seen at ``point``.
    root: str
    point: Path
    is_version_2: bool

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


def _mounts(mountinfo: str, controller: str) -> Iterator[_Mount]:
    """Yield the mounts of cgroups with this controller in them; see proc_pid_mountinfo(5)."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split(" ")[3:5]
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            yield _Mount(root, Path(point), is_version_2=True)
        elif kind == "cgroup" and controller in options.split(","):
            yield _Mount(root, Path(point), is_version_2=False)


def usable_cores(process: Path = OWN_PROCESS) -> int:
    """Return how many cores this process can keep busy, at least 1.

    They are the machine's, fewer where the process is bound to some of them (``taskset``, Slurm, a
    cpuset), and fewer where a cgroup gives it the time of fewer (``docker --cpus``, a limit in
    Kubernetes): part of a core counts as one.
    """
    return max(1, min([_bound_to(), *map(math.ceil, _quotas(process))]))


def _bound_to() -> int:
    if hasattr(os, "sched_getaffinity"):  # on Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas(process: Path) -> Iterator[float]:
    """Yield how many cores' time each cgroup gives that limits it."""
    for group in cgroups_of("cpu", process):
        with suppress(OSError, ValueError):  # "max", or no such file, as for the outermost
            if (time := _time_per_period(group)) > 0:  # -1 is no limit
                yield time


def _time_per_period(group: Cgroup) -> float:
    if group.is_version_2:
        quota, period = (group.directory / "cpu.max").read_text().split()
    else:
        quota, period = (
            (group.directory / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")
        )
    return int(quota) / int(period)

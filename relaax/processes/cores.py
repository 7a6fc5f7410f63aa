"""How many cores this process may use: everything that counts threads or workers asks here."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from relaax.processes.cgroups import OWN_PROCESS, Cgroup, cgroups_of


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

"""What processes should give back: memory, descriptors, shared memory, zombies."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import psutil
from soak_processes import Run, Sample, Supervised
from soak_trends import Trend, trend_of
from soak_usage import early_and_late

#: A slope of fewer samples says nothing.
_LEAST_SAMPLES = 20

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - what lies there is looked at

#: Names of this project, and those that Python gives: other programs of the machine use it, too.
_OURS = ("relaax", "psm_", "sem.")


def trends(processes: Sequence[Supervised], settled_s: float) -> list[Trend]:
    """Return the trends of the longest run of each once it has settled, if that was long enough."""
    longest = {each.name: max(each.runs, key=lambda run: len(run.samples)) for each in processes}
    found = []
    for name, run in longest.items():
        samples = _settled(run, settled_s)
        if len(samples) >= _LEAST_SAMPLES:
            seconds, mib = zip(*((sample.at, sample.mib) for sample in samples), strict=True)
            found.append(trend_of(name, seconds, mib))
    return found


def descriptors(processes: Sequence[Supervised], settled_s: float) -> list[tuple[str, int, int]]:
    """Return the name, and the usual descriptors early and late, of runs that were long enough."""
    found = []
    for each in processes:
        samples = _settled(each.run, settled_s)
        if len(samples) >= _LEAST_SAMPLES:
            found.append((each.name, *early_and_late([each.descriptors for each in samples])))
    return found


def shared_memory() -> set[str]:
    """Return the names of what lies in shared memory and may be of such processes."""
    return {path.name for path in _SHARED_MEMORY.iterdir() if path.name.startswith(_OURS)}


def zombies(processes: Sequence[Supervised]) -> list[str]:
    """Return the processes that have ended, and that their parents have not collected."""
    found = []
    for each in processes:
        for member in each.run.family():
            with contextlib.suppress(psutil.Error):
                if member.status() == psutil.STATUS_ZOMBIE:
                    found.append(f"{each.name}: {member.pid}")
    return found


def _settled(run: Run, settled_s: float) -> list[Sample]:
    """Return what it has used from so many seconds on after it was ready: until then it starts."""
    if run.ready_at is None:
        return []
    return [sample for sample in run.samples if sample.at - run.ready_at >= settled_s]

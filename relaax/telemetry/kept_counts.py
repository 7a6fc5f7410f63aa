"""Counts of a process that others can read, also after it was killed.

They lie in memory without a name in any file system. Another process of the same user opens it
while this one runs, and sees all counts up to the last instruction, however this one ends: so the
exact loss is known.
"""

import json
import mmap
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

#: Steps whose reward has come, and their fate: a learner or a replay server has acknowledged them,
#: or no server took them in time.
TAKEN, DELIVERED, DROPPED = "taken", "delivered", "dropped"


#: The name of the memory in /proc/PID/fd.
_NAME = "relaax-counts"

#: The names of the counts come first, as JSON.
_HEAD_BYTES = 1024

_FLOAT_BYTES = 8


class KeptCounts:
    """Counts by name, in as many ``rows``; each cell has one writer.

    Processes that are forked later share them. On a system without memfd, other processes cannot
    open them, and all else is the same.
    """

    def __init__(self, names: Sequence[str], rows: int = 1) -> None:
        head = json.dumps({"names": list(names), "rows": rows}).encode()
        size = _HEAD_BYTES + rows * len(names) * _FLOAT_BYTES
        self._memory = _new_memory(size)
        self._memory[: len(head)] = head
        self._read_head()

    @classmethod
    def of_process(cls, pid: int) -> "KeptCounts | None":
        """Return the counts of a running process; None if it has none, or is gone."""
        with suppress(OSError):
            for path in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if os.readlink(path).startswith(f"/memfd:{_NAME}"):
                        return cls._opened(path)
        return None

    @property
    def names(self) -> list[str]:
        """The names of the counts."""
        return self._names

    def row(self, number: int = 0) -> "CountsRow":
        """Return a row for its writer."""
        width = len(self._names)
        return CountsRow(self._names, self._cells[number * width : (number + 1) * width])

    def totals(self) -> dict[str, float]:
        """Return the sums of all rows by name."""
        cells = np.asarray(self._cells).reshape(-1, len(self._names))
        return dict(zip(self._names, cells.sum(axis=0).tolist(), strict=True))

    @classmethod
    def _opened(cls, path: Path) -> "KeptCounts":
        counts = cls.__new__(cls)
        descriptor = os.open(path, os.O_RDWR)
        try:
            counts._memory = mmap.mmap(descriptor, 0)
        finally:
            os.close(descriptor)
        counts._read_head()
        return counts

    def _read_head(self) -> None:
        head = json.loads(self._memory[:_HEAD_BYTES].rstrip(b"\0"))
        self._names: list[str] = head["names"]
        self._cells = memoryview(self._memory)[_HEAD_BYTES:].cast("d")


class CountsRow:
    """A row of counts, for the threads of one process to write."""

    def __init__(self, names: Sequence[str], cells: "memoryview[float]") -> None:
        self._cells = cells
        self._places = {name: place for place, name in enumerate(names)}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> float:
        return self._cells[self._places[name]]

    def add(self, name: str, count: float) -> None:
        """Count so many more."""
        with self._lock:
            self._cells[self._places[name]] += count


def _new_memory(size: int) -> mmap.mmap:
    if not hasattr(os, "memfd_create"):
        return mmap.mmap(-1, size)
    descriptor = os.memfd_create(_NAME)
    try:
        os.ftruncate(descriptor, size)
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)

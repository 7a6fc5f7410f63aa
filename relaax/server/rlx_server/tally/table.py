"""The memory that an RLX server shares with its workers and its watcher."""

import mmap
import time

import numpy as np
import numpy.typing as npt

from relaax.server.rlx_server.tally.places import OwnPlaces, PlaceTable
from relaax.server.rlx_server.tally.row import (
    LOST,
    STEPS,
    TURN_BEGAN,
    WIDTH,
    Cell,
    ServerState,
    WorkerRow,
    kept_steps,
    private_row,
)
from relaax.telemetry.kept_counts import DELIVERED, DROPPED, TAKEN

IntArray = npt.NDArray[np.int64]

#: So many workers are counted at a time; memory is taken for existing ones only.
MOST_WORKERS = 16_384

_FLOAT_BYTES = 8

_HEAD = 2

#: How often a reader looks again whether rows are being added up.
_AGAIN_S = 0.001

#: A parent that was killed while it added up is never done.
_MOST_TRIES = 1000


class SlotPool:
    """Hands out the smallest numbers that are free, from 0 on."""

    def __init__(self) -> None:
        self._is_taken = np.zeros(0, np.bool_)

    @property
    def capacity(self) -> int:
        """One more than the largest number that can be out."""
        return len(self._is_taken)

    def take(self, count: int) -> IntArray:
        """Return ``count`` free numbers: int64 [count], in order."""
        free = np.flatnonzero(~self._is_taken)
        if len(free) < count:
            more = max(count - len(free), self.capacity)
            free = np.concatenate([free, np.arange(self.capacity, self.capacity + more)])
            self._is_taken = np.concatenate([self._is_taken, np.zeros(more, np.bool_)])
        taken = free[:count]
        self._is_taken[taken] = True
        return taken

    def give_back(self, numbers: IntArray) -> None:
        """Take back numbers."""
        self._is_taken[numbers] = False


FloatArray = npt.NDArray[np.float64]


#: Odd while rows are being added up, and how many rows have ever been used.
_CHANGES, _USED = 0, 1


class Tally:
    """A row for each worker, which an RLX server gives out and takes back.

    It is made before anything is forked. The RLX server alone calls ``take`` and ``give_back``; any
    process may read. If the workers ``deliver`` their steps, steps that a worker had not delivered
    when it ended are counted as lost.
    """

    def __init__(self, deliver: bool = False) -> None:
        self._deliver = deliver
        #: Steps by their fate; the next worker in a row goes on counting.
        self.kept = kept_steps(MOST_WORKERS + 1)
        cells = _HEAD + len(Cell) + (MOST_WORKERS + 1) * WIDTH
        self._memory = mmap.mmap(-1, cells * _FLOAT_BYTES)
        everything = memoryview(self._memory).cast("d")
        self._head = everything[:_HEAD]
        self._rows_view = everything[_HEAD + len(Cell) :]
        #: float64 [rows, WIDTH]: the first row has the counts of departed workers.
        self._rows: FloatArray = np.asarray(self._rows_view).reshape(-1, WIDTH)
        self._numbers = SlotPool()
        #: Where the environments of all workers are.
        self.places = PlaceTable()
        #: The figures of the whole server.
        self.state = ServerState(everything[_HEAD : _HEAD + len(Cell)])

    def take(self) -> int | None:
        """Return the number of a free row, for a worker; None if all are taken."""
        number = int(self._numbers.take(1)[0]) + 1
        if number > MOST_WORKERS:
            self._numbers.give_back(np.array([number - 1]))
            return None
        self._head[_USED] = max(self._head[_USED], number)
        return number

    def row(self, number: int | None) -> WorkerRow:
        """Return a row for its worker to write; for None a row that nobody reads."""
        if number is None:
            return private_row()
        cells = self._rows_view[number * WIDTH : (number + 1) * WIDTH]
        return WorkerRow(cells, self.kept.row(number), OwnPlaces(self.places, number))

    def give_back(self, number: int | None) -> None:
        """Add a departed worker's counts to the first row, and free its own."""
        if number is None:
            return
        self._count_lost(number)
        self._head[_CHANGES] += 1
        self._rows[0, STEPS:] += self._rows[number, STEPS:]
        self._rows[number] = 0
        self.places.release(number)
        self._head[_CHANGES] += 1
        self._numbers.give_back(np.array([number - 1]))

    def _count_lost(self, number: int) -> None:
        """Count a departed worker's undelivered steps; some of them may have been stored."""
        if self._deliver:
            row = self.kept.row(number)
            row.add(LOST, row[TAKEN] - row[DELIVERED] - row[DROPPED] - row[LOST])

    def turn_began(self, number: int | None) -> float:
        """Return when the turn of a worker began that goes on; 0 before the first one."""
        return 0.0 if number is None else float(self._rows[number, TURN_BEGAN])

    def totals(self) -> FloatArray:
        """Return the sums of all workers, float64 [WIDTH], departed ones included."""
        for _ in range(_MOST_TRIES):
            before = self._head[_CHANGES]
            sums: FloatArray = self._rows[: int(self._head[_USED]) + 1].sum(axis=0)
            if before % 2 == 0 and self._head[_CHANGES] == before:
                break
            time.sleep(_AGAIN_S)
        return sums

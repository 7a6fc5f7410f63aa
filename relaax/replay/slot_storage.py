"""Steps as columns, of which each slot has room of its own."""

import numpy as np

from relaax.replay.schema import Schema
from relaax.replay.storage import NONE, IntArray, Storage


class SlotStorage(Storage):
    """The newest ``size`` steps of each of ``count`` rings; slot s writes into ring s % ``count``.

    A ring's rows lie side by side. Only its oldest ones may be evicted.
    """

    def __init__(self, schema: Schema, count: int, size: int) -> None:
        super().__init__(schema, count * size)
        self.count, self.size = count, size
        #: By ring: the place in it that is taken next, and how many rows it has.
        self._ends = np.zeros(count, np.int64)
        self._held = np.zeros(count, np.int64)

    def held(self, slot: int) -> int:
        """Return how many rows the ring of ``slot`` has."""
        return int(self._held[slot % self.count])

    def ring(self, slot: int, begin: int, end: int) -> IntArray:
        """Return rows ``begin`` up to ``end`` of the ring of ``slot``, from its oldest one on."""
        ring = slot % self.count
        places = np.arange(begin, end) + self._ends[ring] - self._held[ring]
        rows: IntArray = ring * self.size + places % self.size
        return rows

    def evict(self, rows: IntArray) -> None:
        """See Storage."""
        super().evict(rows)
        np.subtract.at(self._held, rows // self.size, 1)

    def _take(self, slot: int, count: int) -> IntArray:
        ring, held = slot % self.count, self.held(slot)
        rows = self.ring(slot, held, held + count)
        self.evict(rows[self.serials[rows] != NONE])
        self._ends[ring] = (self._ends[ring] + count) % self.size
        self._held[ring] += count
        return rows

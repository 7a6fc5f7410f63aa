"""Items over stored steps: which there are, which are drawn, and what is read of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.gather import Empty
from relaax.replay.limiter import Limiter
from relaax.replay.readiness import Readiness
from relaax.replay.selectors.prioritized import Prioritized
from relaax.replay.selectors.selector import FloatArray, IntArray, Selector
from relaax.replay.storage import NONE, START, Storage
from relaax.replay.views import View

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Sample:
    """Items that were drawn, N of them."""

    #: int64 [N]: names of the items, which no others ever have.
    keys: IntArray
    #: float64 [N]: how probable each was.
    probabilities: FloatArray
    #: By name: what the table's view reads, [N, ...] or time-major.
    columns: dict[str, Array]
    #: How many items the table had.
    items: int
    #: Of the item that is drawn most seldom.
    least_probability: float


@dataclass
class TableCounts:
    """What happened in a table so far, in items."""

    inserted: int = 0
    drawn: int = 0
    evicted: int = 0
    stale_updates: int = 0


class Table:
    """Items over a storage. Not for several threads at once: its owner has the lock."""

    def __init__(
        self,
        storage: Storage,
        view: View,
        selector: Selector,
        limiter: Limiter,
        max_times_sampled: int | None = None,
    ) -> None:
        self._storage = storage
        self._view = view
        self._selector = selector
        self._limiter = limiter
        self._readiness = Readiness(storage, view.ahead)
        self._max_times = max_times_sampled
        self._times = np.zeros(storage.capacity if max_times_sampled else 0, np.int64)
        self.counts = TableCounts()
        storage.listeners.append(self.evicted)

    def __len__(self) -> int:
        """Return how many items can be drawn."""
        return len(self._selector)

    @property
    def has_priorities(self) -> bool:
        """Whether items are drawn by priorities."""
        return isinstance(self._selector, Prioritized)

    def may_insert(self, count: int) -> bool:
        """Return whether ``count`` more steps may be stored."""
        return self._limiter.may_insert(len(self), self.counts.inserted, self.counts.drawn, count)

    def may_draw(self, count: int) -> bool:
        """Return whether ``count`` items may be drawn."""
        return self._is_ready() and self._limiter.may_draw(
            len(self), self.counts.inserted, self.counts.drawn, count
        )

    def appended(self, slot: int, rows: IntArray) -> None:
        """Take up what ``rows`` [N], the newest of ``slot``, have completed."""
        complete = self._readiness.appended(slot, rows)
        self.insert(complete[self._view.items(self._storage, complete)])

    def insert(self, items: IntArray) -> None:
        """Take up ``items`` [N]: the rows of those that are complete now."""
        if self._max_times:
            self._times[items] = 0
        self._selector.add(items)
        self.counts.inserted += len(items)

    def draw(self, count: int, *, empty: Empty = np.empty) -> Sample:
        """Draw ``count`` items and read them into what ``empty`` makes; ``may_draw`` must hold."""
        items, least_probability = len(self), self._selector.least_probability
        drawn = self._selector.draw(count)
        self.counts.drawn += count
        sample = Sample(
            keys=self._keys(drawn.rows),
            probabilities=drawn.probabilities,
            columns=self._view.read(self._storage, drawn.rows, empty),
            items=items,
            least_probability=least_probability,
        )
        if self._max_times:
            self._retire(drawn.rows, self._max_times)
        return sample

    def update_priorities(self, keys: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N]; return how many of them are gone, which is counted.

        ValueError for a table without priorities.
        """
        if not isinstance(self._selector, Prioritized):  # as ``has_priorities`` says
            raise ValueError("the items of this table have no priorities")
        rows = keys % self._storage.capacity
        is_here = self._keys(rows) == keys
        # An item that was drawn twice has two priorities: the later one counts.
        rows, places = np.unique(rows[is_here][::-1], return_index=True)
        unknown = self._selector.update(rows, priorities[is_here][::-1][places])
        stale = int(np.count_nonzero(~is_here)) + unknown
        self.counts.stale_updates += stale
        return stale

    def evicted(self, rows: IntArray) -> None:
        """Forget the items of consecutive ``rows``, and those behind that look back at them."""
        slot = int(self._storage.slots[rows[0]])
        rows = np.concatenate([rows, self._looking_back(int(rows[-1]))])
        self._readiness.forget(slot, rows)
        before = len(self)
        self._selector.remove(rows)
        self.counts.evicted += before - len(self)

    def _is_ready(self) -> bool:
        """Return whether anything may be drawn at all, whatever the limiter says."""
        return True

    def _looking_back(self, row: int) -> IntArray:
        """Return the rows behind ``row`` that need it, which are of its episode."""
        found: list[int] = []
        while len(found) < self._view.behind:
            row = int(self._storage.following[row])
            if row == NONE or self._storage.flags[row] & START:
                break
            found.append(row)
        return np.array(found, np.int64)

    def _keys(self, rows: IntArray) -> IntArray:
        """Return keys int64 [N], which no other item ever has."""
        return self._storage.serials[rows] * self._storage.capacity + rows

    def _retire(self, rows: IntArray, most: int) -> None:
        """Count a draw of ``rows``, and remove what has been drawn ``most`` times."""
        np.add.at(self._times, rows, 1)
        self._selector.remove(np.unique(rows[self._times[rows] >= most]))

"""Which items leave a table that has too many."""

from typing import Literal, TypeAlias

import numpy as np

from relaax.errors import ConfigurationError
from relaax.replay.limiter import Limiter
from relaax.replay.selectors import FloatArray, IntArray, Prioritized, Selector
from relaax.replay.storage import Storage

RemoverName: TypeAlias = Literal["fifo", "lowest_priority"]

#: This part of a table's items leaves at once: the search looks at all items.
PARTS = 64


class Remover:
    """Removes items of a table, so that it never has more than the limiter's ``max_items``.

    ``fifo`` removes the items whose steps were stored first; ``lowest_priority`` the items of the
    lowest priority, and of equal ones the first stored. ConfigurationError without priorities, or
    without ``max_items``.

    A removal looks at all items, some 20 ms for a million, and for priorities at all rows of the
    storage, 0.2 ms for a million. A large table removes many at once. A table with fewer than
    ``PARTS`` items, or with ``min_items`` near ``max_items``, does so at each step that brings an
    item: let ``max_items`` of a large table be some percent above ``min_items``.
    """

    def __init__(
        self, name: RemoverName, limiter: Limiter, selector: Selector, storage: Storage
    ) -> None:
        if limiter.max_items is None:
            raise ConfigurationError(f"the remover {name} needs max_items")
        if name == "lowest_priority" and not isinstance(selector, Prioritized):
            raise ConfigurationError(f"the remover {name} needs the selector prioritized")
        self._name = name
        self._most = limiter.max_items
        self._left_over = max(limiter.min_items, self._most - self._most // PARTS)
        self._selector = selector
        self._storage = storage

    def make_room(self) -> int:
        """Let items leave if there are too many; return how many left."""
        if len(self._selector) <= self._most:
            return 0
        items = self._selector.contents()
        rows, count = items["rows"], len(items["rows"]) - self._left_over
        if self._name == "lowest_priority":
            self._selector.remove(self._lowest(rows, items["priorities"], count))
        else:
            self._selector.remove(self._oldest(rows, count))
        return count

    def _oldest(self, rows: IntArray, count: int) -> IntArray:
        """Return the ``count`` of ``rows`` [N] that were stored first."""
        if count == len(rows):
            return rows
        return rows[np.argpartition(self._storage.serials[rows], count)[:count]]

    def _lowest(self, rows: IntArray, priorities: FloatArray, count: int) -> IntArray:
        """Return the ``count`` of ``rows`` [N] with the lowest priorities [N].

        All new items have the same one, the largest: without their age, the newest would leave as
        soon as any.
        """
        bound = np.partition(priorities, count - 1)[count - 1]
        lower = rows[priorities < bound]
        ties = self._oldest(rows[priorities == bound], count - len(lower))
        return np.concatenate([lower, ties])

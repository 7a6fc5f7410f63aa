"""Items in proportion to a power of their priorities."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.priority_tree import PriorityTree
from relaax.replay.selectors.selector import Drawn, FloatArray, IntArray


class Prioritized:
    """Draws with replacement, with P(i) = p_i**alpha / sum of p**alpha (Schaul et al. 2016, (1)).

    A new item has the largest priority that there has ever been, 1 at first, so that it is drawn
    soon. An item of priority 0 is never drawn.
    """

    def __init__(self, capacity: int, alpha: float, generator: np.random.Generator) -> None:
        #: The power of a priority that an item is drawn in proportion to.
        self.alpha = alpha
        self._tree = PriorityTree(capacity)
        self._is_item = np.zeros(capacity, np.bool_)
        self._count = 0
        self._largest = 1.0
        self._generator = generator

    def __len__(self) -> int:
        """See Selector."""
        return self._count

    @property
    def weight(self) -> float:
        """See Selector."""
        return self._tree.total

    @property
    def most(self) -> float:
        """See Selector."""
        return math.inf

    def add(self, rows: IntArray) -> None:
        """See Selector."""
        self._is_item[rows] = True
        self._count += len(rows)
        self._tree.set(rows, np.full(len(rows), self._largest**self.alpha))

    def remove(self, rows: IntArray) -> None:
        """See Selector."""
        known = rows[self._is_item[rows]]
        self._is_item[known] = False
        self._count -= len(known)
        self._tree.set(known, np.zeros(len(known)))

    def draw(self, count: int) -> Drawn:
        """See Selector: one item from each of ``count`` equal parts of the sum (appendix B.2.1)."""
        total = self._tree.total
        parts = (np.arange(count) + self._generator.random(count)) * (total / count)
        rows = self._tree.find(parts)
        return Drawn(rows, self._tree.priorities(rows) / total)

    @property
    def least_probability(self) -> float:
        """The largest weight: of the item that is drawn most seldom."""
        return self._tree.least / self._tree.total

    def update(self, rows: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N] of at least 0; return how many of them were unknown."""
        known = self._is_item[rows]
        rows, priorities = rows[known], priorities[known]
        if len(rows):
            self._largest = max(self._largest, float(priorities.max()))
            self._tree.set(rows, priorities**self.alpha)
        return int(np.count_nonzero(~known))

    def contents(self) -> dict[str, npt.NDArray[Any]]:
        """See Selector."""
        return {
            "rows": (rows := np.flatnonzero(self._is_item)),
            "priorities": self._tree.priorities(rows),
            "largest": np.array([self._largest]),
        }

    def restore(self, contents: Mapping[str, npt.NDArray[Any]]) -> None:
        """See Selector."""
        rows = contents["rows"]
        self.add(rows)
        self._tree.set(rows, contents["priorities"])
        self._largest = float(contents["largest"][0])

"""Sums and least values of priorities, for drawing in proportion to them."""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

#: Children of a node. More make the tree flatter, and each of its levels slower.
FANOUT = 16


class PriorityTree:
    """Priorities of ``capacity`` places, each 0 at first: a place of priority 0 is never found.

    Every node has the sum of its children, which is added up again whenever one of them changes, so
    that rounding errors do not grow. Many places are set, or found, at once: a level of the tree is
    a few operations on whole arrays (Schaul et al. 2016, appendix B.2.1, with one child in two).
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, is {capacity}")
        sizes = [_rounded_up(capacity)]
        while sizes[-1] > FANOUT:
            sizes.append(_rounded_up(sizes[-1] // FANOUT))
        #: From the leaves to the node below the root: float64 [nodes].
        self._sums = [np.zeros(size) for size in sizes]
        self._least = [np.full(size, np.inf) for size in sizes]

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        return float(self._sums[-1].sum())

    @property
    def least(self) -> float:
        """The least priority above 0; infinite where there is none."""
        return float(self._least[-1].min())

    def priorities(self, places: IntArray) -> FloatArray:
        """Return the priorities float64 [N] of ``places`` int64 [N]."""
        found: FloatArray = self._sums[0][places]
        return found

    def set(self, places: IntArray, priorities: npt.ArrayLike) -> None:
        """Give ``places`` int64 [N] finite priorities [N] of at least 0; no place stands twice."""
        self._sums[0][places] = priorities
        changed = self._sums[0][places]
        self._least[0][places] = np.where(changed > 0, changed, np.inf)
        nodes = places
        for level in range(1, len(self._sums)):
            nodes = nodes // FANOUT
            self._sums[level][nodes] = _children(self._sums[level - 1])[nodes].sum(axis=1)
            self._least[level][nodes] = _children(self._least[level - 1])[nodes].min(axis=1)

    def find(self, sums: FloatArray) -> IntArray:
        """Return the places int64 [N] in which ``sums`` [N] lie, from 0 to below the total.

        That is the first place where the sum of its priority and all before it is larger.
        """
        nodes = np.zeros(len(sums), np.int64)
        left = np.array(sums, np.float64)
        for level in reversed(self._sums):
            until = _children(level)[nodes].cumsum(axis=1)
            # Rounding may carry a sum beyond the last child that has any: it belongs there.
            last = (until < until[:, -1:]).sum(axis=1)
            child = np.minimum((until <= left[:, np.newaxis]).sum(axis=1), last)
            before = np.take_along_axis(until, np.maximum(child - 1, 0)[:, np.newaxis], axis=1)
            left -= np.where(child > 0, before[:, 0], 0.0)
            nodes = nodes * FANOUT + child
        return nodes


def _rounded_up(size: int) -> int:
    return -(-size // FANOUT) * FANOUT


def _children(level: FloatArray) -> FloatArray:
    return level.reshape(-1, FANOUT)

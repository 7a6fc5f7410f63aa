"""Sums and least values of priorities, for drawing in proportion to them."""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

#: Children of a node. More make the tree flatter, and each of its levels slower.
FANOUT = 16

#: After so many changes sums are added up, even if they are not used.
MOST_CHANGED = 4096


class PriorityTree:
    """Priorities of ``capacity`` places, each 0 at first: a place of priority 0 is never found.

    Every node has the sum of its children. If one of them has changed, it is added up again before
    it is used, so that rounding errors do not grow. Many places are set, or found, at once: a level
    of the tree is a few operations on whole arrays (Schaul et al. 2016, appendix B.2.1, with one
    child in two).
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
        #: Places whose nodes are not added up yet, and their number.
        self._changed: list[IntArray] = []
        self._changed_count = 0

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        self._add_up()
        return float(self._sums[-1].sum())

    @property
    def least(self) -> float:
        """The least priority above 0; infinite if all are 0."""
        self._add_up()
        return float(self._least[-1].min())

    def priorities(self, places: IntArray) -> FloatArray:
        """Return the priorities float64 [N] of ``places`` int64 [N]."""
        found: FloatArray = self._sums[0][places]
        return found

    def set(self, places: IntArray, priorities: npt.ArrayLike) -> None:
        """Give ``places`` int64 [N] finite priorities [N] of at least 0; no place stands twice."""
        if len(places) == 0:
            return
        self._sums[0][places] = priorities
        self._changed.append(places)
        self._changed_count += len(places)
        if self._changed_count > MOST_CHANGED:
            self._add_up()

    def find(self, sums: FloatArray) -> IntArray:
        """Return the places int64 [N] in which ``sums`` [N] lie, from 0 to below the total.

        That is the first place where the sum of its priority and all before it is larger.
        """
        self._add_up()
        nodes = np.zeros(len(sums), np.int64)
        left = np.array(sums, np.float64)
        # Sums of a node's children before each of them, and of all.
        until = np.zeros((len(sums), FANOUT + 1))
        first = np.arange(len(sums)) * (FANOUT + 1)
        for level in reversed(self._sums):
            children = np.take(_children(level), nodes, axis=0, mode="clip")
            children.cumsum(axis=1, out=until[:, 1:])
            # Rounding may carry a sum beyond the last child that has any: it belongs there.
            np.minimum(left, np.nextafter(until[:, -1], 0.0), out=left)
            child = (until[:, 1:] > left[:, np.newaxis]).argmax(axis=1)
            left -= until.reshape(-1)[first + child]
            nodes = nodes * FANOUT + child
        return nodes

    def _add_up(self) -> None:
        """Let every node have the sum and the least of its children again."""
        if not self._changed:
            return
        nodes = np.unique(np.concatenate(self._changed))
        self._changed.clear()
        self._changed_count = 0
        priorities = self._sums[0][nodes]
        self._least[0][nodes] = np.where(priorities > 0, priorities, np.inf)
        for level in range(1, len(self._sums)):
            nodes = _without_repetitions(nodes // FANOUT)
            self._sums[level][nodes] = _children(self._sums[level - 1])[nodes].sum(axis=1)
            self._least[level][nodes] = _children(self._least[level - 1])[nodes].min(axis=1)


def _rounded_up(size: int) -> int:
    return -(-size // FANOUT) * FANOUT


def _without_repetitions(nodes: IntArray) -> IntArray:
    """Return sorted ``nodes``, each once."""
    once: IntArray = nodes[np.concatenate([[True], nodes[1:] != nodes[:-1]])]
    return once


def _children(level: FloatArray) -> FloatArray:
    return level.reshape(-1, FANOUT)

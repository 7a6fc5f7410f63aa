"""Numbers for things that come and go."""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


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

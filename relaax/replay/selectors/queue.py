"""Items in the order in which they came, each drawn once."""

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.selectors.selector import Drawn, IntArray

#: The queue is cleared of removed items when they are so many, and more than the others.
MOST_REMOVED = 1024


class Queue:
    """Hands out each item once: the oldest first, or the newest."""

    def __init__(self, capacity: int, *, is_newest_first: bool = False) -> None:
        self._queue: deque[tuple[int, int]] = deque()
        #: int64 [capacity]: the number of the row's entry in the queue; 0 if it is no item.
        self._tickets = np.zeros(capacity, np.int64)
        self._last_ticket = 0
        self._count = 0
        self._is_newest_first = is_newest_first

    def __len__(self) -> int:
        """See Selector."""
        return self._count

    @property
    def least_probability(self) -> float:
        """See Selector: each is drawn for certain."""
        return 1.0

    @property
    def weight(self) -> float:
        """See Selector."""
        return float(self._count)

    @property
    def most(self) -> float:
        """See Selector."""
        return float(self._count)

    def add(self, rows: IntArray) -> None:
        """See Selector."""
        tickets = np.arange(self._last_ticket + 1, self._last_ticket + 1 + len(rows))
        self._last_ticket += len(rows)
        self._tickets[rows] = tickets
        self._queue.extend(zip(tickets.tolist(), rows.tolist(), strict=True))
        self._count += len(rows)

    def remove(self, rows: IntArray) -> None:
        """See Selector."""
        self._count -= int(np.count_nonzero(self._tickets[rows]))
        self._tickets[rows] = 0
        if len(self._queue) - self._count > max(self._count, MOST_REMOVED):
            self._queue = deque(entry for entry in self._queue if self._is_valid(entry))

    def draw(self, count: int) -> Drawn:
        """See Selector; there must be ``count`` items."""
        rows = np.array([self._next() for _ in range(count)], np.int64)
        self.remove(rows)
        return Drawn(rows, np.ones(count))

    def contents(self) -> dict[str, npt.NDArray[Any]]:
        """See Selector."""
        return {"rows": np.array([row for _, row in filter(self._is_valid, self._queue)], np.int64)}

    def restore(self, contents: Mapping[str, npt.NDArray[Any]]) -> None:
        """See Selector."""
        self.add(contents["rows"])

    def _next(self) -> int:
        while True:
            entry = self._queue.pop() if self._is_newest_first else self._queue.popleft()
            if self._is_valid(entry):
                return entry[1]

    def _is_valid(self, entry: tuple[int, int]) -> bool:
        ticket, row = entry
        return bool(self._tickets[row] == ticket)

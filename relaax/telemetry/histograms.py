"""Histograms of durations and sizes in plain cells, which other processes may share."""

from array import array
from bisect import bisect_left
from collections.abc import Sequence

#: Upper bounds of durations in seconds, and of numbers of environments.
SECONDS = (
    1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def width(bounds: Sequence[float]) -> int:
    """Return the number of a histogram's cells: the sum, and the count of each bound and above."""
    return len(bounds) + 2


class Histogram:
    """Counts values by the first bound that they do not exceed; the first cell has their sum.

    ``cells`` are float64 [width(bounds)], by default its own.
    """

    def __init__(self, bounds: Sequence[float], cells: "memoryview[float] | None" = None) -> None:
        own: memoryview[float] = memoryview(array("d", [0.0]) * width(bounds))
        self.bounds = bounds
        self._cells = own if cells is None else cells

    def add(self, value: float, times: int = 1) -> None:
        """Count ``value`` so many times."""
        self._cells[0] += value * times
        self._cells[1 + bisect_left(self.bounds, value)] += times

    def values(self) -> list[float]:
        """Return the sum of all values, and the count of each bound, and of all above."""
        return list(self._cells)

"""Counts and histograms in a row of float64 cells."""

from bisect import bisect_left
from collections.abc import Sequence

#: Upper bounds of histograms of durations.
SECONDS = (
    1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip

#: Upper bounds of histograms of numbers of environments.
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Histogram:
    """Counts values by the first of ``bounds`` that they do not exceed, from cell ``begin`` on.

    The first cell has the sum of the values.
    """

    def __init__(self, cells: "memoryview[float]", begin: int, bounds: Sequence[float]) -> None:
        self._cells = cells
        self._begin = begin
        self._bounds = bounds

    @staticmethod
    def cells_of(bounds: Sequence[float]) -> int:
        """Return how many cells it takes: the sum, each bound, and all above."""
        return len(bounds) + 2

    def add(self, value: float, times: int = 1) -> None:
        """Count ``value`` so many times."""
        begin = self._begin
        self._cells[begin] += value * times
        self._cells[begin + 1 + bisect_left(self._bounds, value)] += times

"""A worker's end of a filter."""

import threading

import numpy as np
import numpy.typing as npt

from relaax.learning.filters.statistics import (
    DoubleArray,
    FloatVector,
    initial_statistics,
    length_of,
    merge,
    statistics_of,
)

#: Filtered numbers lie within this many standard deviations.
MOST_DEVIATIONS = 10.0

#: Numbers that hardly vary are not blown up.
_LEAST_DEVIATION = 1e-4


class ZFilter:
    """``y = (x - mean) / deviation`` of rows of D numbers; seed 003, "Signal Filtering".

    Means and deviations are those of ``use``, which all workers share. What is filtered is also
    gathered, until ``take`` hands it over. One thread may filter while another one takes and uses.

    Without ``subtracts_mean`` the rows are scaled alone, which is meant for rewards: to subtract
    their mean would pay or punish long episodes.
    """

    def __init__(self, width: int, subtracts_mean: bool = True) -> None:
        self.width = width
        self._subtracts_mean = subtracts_mean
        self._gathered: DoubleArray = initial_statistics(width).astype(np.float64)
        self._changes = threading.Lock()
        #: Replaced as a whole.
        self._scale: tuple[FloatVector, FloatVector] | None = None

    @property
    def length(self) -> int:
        """How long the vectors of ``take`` and ``use`` are."""
        return length_of(self.width)

    def filtered(self, rows: npt.NDArray[np.floating]) -> FloatVector:
        """Gather rows [B, D], and return them filtered: float32 [B, D].

        Before any statistics are in use the rows are returned as they are, but for the limits.
        """
        if len(rows):
            added = statistics_of(rows)
            with self._changes:
                merge(self._gathered, added)
        scale = self._scale
        if scale is not None:
            mean, factor = scale
            rows = (rows - mean) * factor
        clipped: FloatVector = np.clip(rows, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        return clipped.astype(np.float32, copy=False)

    def take(self) -> FloatVector:
        """Return the statistics of what was gathered since the last time, float32 [length]."""
        with self._changes:
            taken = self._gathered.astype(np.float32)
            self._gathered[:] = 0
        return taken

    def use(self, statistics: FloatVector) -> None:
        """Filter by ``statistics`` [length] from now on, unless nothing has been seen yet."""
        if statistics[0] < 2:
            return
        mean, variance = np.split(statistics[1:], 2)
        factor = np.reciprocal(np.maximum(np.sqrt(variance), np.float32(_LEAST_DEVIATION)))
        self._scale = (mean if self._subtracts_mean else np.zeros_like(mean), factor)

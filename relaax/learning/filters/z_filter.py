"""A worker's end of a filter."""

import threading
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector
from relaax.learning.filters.statistics import (
    DoubleArray,
    initial_statistics,
    length_of,
    merge,
    statistics_of,
)

Limit: TypeAlias = FloatVector | np.float32

#: Filtered numbers lie within this many standard deviations.
MOST_DEVIATIONS = 10.0

#: Numbers that are farther away than so many deviations are taken for those that are just so far
#: away: one wrong number of one client must not spoil what all workers filter by.
MOST_GATHERED_DEVIATIONS = 1e3

#: The same before there are any deviations: no number is taken for a larger one.
MOST_AT_FIRST = 1e6

#: The same at all times: squares of larger numbers, summed, come near the limits of float32.
MOST = 1e9

#: Smaller deviations are taken for this one, so that nothing is divided by zero.
LEAST_DEVIATION = 1e-4


@dataclass(frozen=True)
class Scale:
    """What numbers are filtered by; float32 [D] each, or one number for all."""

    lowest: Limit
    highest: Limit
    center: Limit
    #: One by the deviation.
    factor: Limit

    def near(self, rows: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Return rows [B, D] within the limits of what is believed."""
        near: npt.NDArray[np.floating] = np.clip(rows, self.lowest, self.highest)
        return near

    def scaled(self, near: npt.NDArray[np.floating]) -> FloatVector:
        """Return such rows in deviations from the center: float32 [B, D]."""
        scaled = (near - self.center) * self.factor
        clipped: FloatVector = np.clip(scaled, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        return clipped.astype(np.float32, copy=False)


#: As long as nothing is known.
_FIRST = Scale(np.float32(-MOST_AT_FIRST), np.float32(MOST_AT_FIRST), np.float32(0), np.float32(1))


class ZFilter:
    """``y = (x - mean) / deviation`` of rows of D numbers; seed 003, "Signal Filtering".

    Means and deviations are those of ``use``, which all workers share. What is filtered is also
    gathered, until ``take`` hands it over. One thread may filter while another one takes and uses.

    Without ``subtracts_mean`` the rows are divided by their root mean square alone, which is meant
    for rewards: to subtract their mean would pay or punish long episodes. A reward that is always
    1 stays 1.

    With ``gathers`` false nothing is gathered: what is filtered is no part of any statistics.

    Numbers that are very far away are gathered as nearer ones: at first beyond ``MOST_AT_FIRST``,
    then farther than ``MOST_GATHERED_DEVIATIONS`` from the mean, and always beyond ``MOST``.
    """

    def __init__(self, width: int, subtracts_mean: bool = True, gathers: bool = True) -> None:
        self.width = width
        self._subtracts_mean = subtracts_mean
        self._gathers = gathers
        self._gathered: DoubleArray = initial_statistics(width).astype(np.float64)
        self._changes = threading.Lock()
        #: What it filters by; replaced as a whole.
        self.scale = _FIRST

    @property
    def length(self) -> int:
        """How long the vectors of ``take`` and ``use`` are."""
        return length_of(self.width)

    def filtered(self, rows: npt.NDArray[np.floating]) -> FloatVector:
        """Gather rows [B, D], and return them filtered: float32 [B, D].

        Before any statistics are in use the rows are returned as they are, but for the limits.
        """
        scale = self.scale
        near = scale.near(rows)
        if self._gathers:
            self._gather(near)
        return scale.scaled(near)

    def gather(self, rows: npt.NDArray[np.floating]) -> None:
        """Take note of rows [B, D], as ``filtered`` does."""
        self._gather(self.scale.near(rows))

    def scaled(self, rows: npt.NDArray[np.floating]) -> FloatVector:
        """Return rows [B, D] as ``filtered`` does, and gather nothing."""
        scale = self.scale
        return scale.scaled(scale.near(rows))

    def take(self) -> FloatVector:
        """Return the statistics of what was gathered since the last time, float32 [length].

        They are finite.
        """
        with self._changes:
            taken = self._gathered.astype(np.float32)
            self._gathered[:] = 0
        return taken

    def _gather(self, near: npt.NDArray[np.floating]) -> None:
        if len(near):
            added = statistics_of(near)
            with self._changes:
                merge(self._gathered, added)

    def use(self, statistics: FloatVector) -> None:
        """Filter by ``statistics`` [length] from now on, unless nothing has been seen yet."""
        if statistics[0] >= 2:
            self.scale = self.scale_of(statistics)

    def scale_of(self, statistics: FloatVector) -> Scale:
        """Return what ``statistics`` [length] filter by."""
        if statistics[0] < 2:
            return _FIRST
        mean, variance = np.split(statistics[1:], 2)
        center = mean if self._subtracts_mean else np.zeros_like(mean)
        size = np.sqrt(variance + np.square(mean - center))
        deviation = np.maximum(size, np.float32(LEAST_DEVIATION))
        reach = deviation * np.float32(MOST_GATHERED_DEVIATIONS)
        return Scale(
            lowest=np.maximum(center - reach, np.float32(-MOST)),
            highest=np.minimum(center + reach, np.float32(MOST)),
            center=center,
            factor=np.reciprocal(deviation),
        )

"""A worker's end of a filter."""

import threading
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector
from relaax.learning.filters.statistics import (
    LARGEST,
    DoubleArray,
    initial_moments,
    length_of,
    merge_moments,
    moments_of,
    packed,
    unpacked,
)

Limit: TypeAlias = DoubleArray | np.float64

#: Filtered numbers lie within this many standard deviations.
MOST_DEVIATIONS = 10.0

#: Numbers that are farther away than so many deviations are taken for those that are just so far
#: away: one wrong number of one client must not spoil what all workers filter by.
MOST_GATHERED_DEVIATIONS = 1e3

#: The same before there are any deviations, where most numbers are 0.
MOST_AT_FIRST = 1e6

#: A number that varies by a smaller part of itself does not vary: that is what float64 rounds.
LEAST_PART = 1e-13

#: Before there are deviations, so many rows are judged together by their median; fewer than the
#: second number wait for others.
ROWS_AT_FIRST, LEAST_ROWS_AT_FIRST = 32, 5


@dataclass(frozen=True)
class Scale:
    """What numbers are filtered by; float64 [D] each, or one number for all."""

    lowest: Limit
    highest: Limit
    center: Limit
    #: One by the deviation.
    factor: Limit

    @property
    def needs_double(self) -> bool:
        """Whether float32 would round numbers by more than a thousandth of their deviation."""
        rounded = np.finfo(np.float32).eps * np.abs(self.center) * self.factor
        return bool(np.max(rounded, initial=0.0) > 1e-3)

    def near(self, rows: npt.NDArray[np.floating]) -> DoubleArray:
        """Return rows [B, D] within the limits of what is believed."""
        near: DoubleArray = np.clip(rows, self.lowest, self.highest, dtype=np.float64)
        return near

    def scaled(self, near: DoubleArray) -> FloatVector:
        """Return such rows in deviations from the center: float32 [B, D].

        What is subtracted may be a million times the deviation: float32 comes last.
        """
        scaled = (near - self.center) * self.factor
        return np.clip(scaled, -MOST_DEVIATIONS, MOST_DEVIATIONS).astype(np.float32)


#: As long as nothing is known.
_FIRST = Scale(np.float64(-LARGEST), np.float64(LARGEST), np.float64(0), np.float64(1))


class ZFilter:
    """``y = (x - mean) / deviation`` of rows of D numbers; seed 003, "Signal Filtering".

    Means and deviations are those of ``use``, which all workers share. What is filtered is also
    gathered, until ``take`` hands it over. One thread may filter while another one takes and uses.

    Without ``subtracts_mean`` the rows are divided by their root mean square alone, which is meant
    for rewards: to subtract their mean would pay or punish long episodes. A reward that is always
    1 stays 1. A number that never varies is divided by its own size, and 0 by 1.

    With ``gathers`` false nothing is gathered: what is filtered is no part of any statistics.

    Numbers that are very far away are gathered as nearer ones: farther than
    ``MOST_GATHERED_DEVIATIONS`` from the mean; at first from the median of some rows, whose
    deviation is the median distance from it, or the median itself.
    """

    def __init__(self, width: int, subtracts_mean: bool = True, gathers: bool = True) -> None:
        self.width = width
        self._subtracts_mean = subtracts_mean
        self._gathers = gathers
        self._gathered = initial_moments(width)
        #: Rows that came before there was anything to judge them by.
        self._first_rows: DoubleArray = np.zeros((0, width))
        self._changes = threading.Lock()
        #: What it filters by; replaced as a whole.
        self.scale = _FIRST

    @property
    def length(self) -> int:
        """How long the vectors of ``take`` and ``use`` are."""
        return length_of(self.width)

    @property
    def has_statistics(self) -> bool:
        """Whether rows are filtered by statistics yet, or returned as they are."""
        return self.scale is not _FIRST

    def filtered(self, rows: npt.NDArray[np.floating]) -> FloatVector:
        """Gather rows [B, D], and return them filtered: float32 [B, D].

        Before any statistics are in use the rows are returned as they are, but for the limits.
        """
        scale = self.scale
        near = scale.near(rows)
        if self._gathers:
            self._gather(near, scale)
        return scale.scaled(near)

    def gather(self, rows: npt.NDArray[np.floating]) -> None:
        """Take note of rows [B, D], as ``filtered`` does."""
        scale = self.scale
        self._gather(scale.near(rows), scale)

    def add(self, statistics: FloatVector) -> None:
        """Take note of ``statistics`` [length] that ``take`` of another filter has returned."""
        with self._changes:
            merge_moments(self._gathered, unpacked(statistics))

    def scaled(self, rows: npt.NDArray[np.floating]) -> FloatVector:
        """Return rows [B, D] as ``filtered`` does, and gather nothing."""
        scale = self.scale
        return scale.scaled(scale.near(rows))

    def take(self) -> FloatVector:
        """Return the statistics of what was gathered since the last time, float32 [length].

        They are finite. The first rows wait until there are enough of them.
        """
        with self._changes:
            least = LEAST_ROWS_AT_FIRST if self.scale is _FIRST else 1
            if len(self._first_rows) >= least:
                self._judge_first_rows()
            taken = packed(self._gathered)
            self._gathered[:] = 0
        return taken

    def _gather(self, near: DoubleArray, scale: Scale) -> None:
        if not len(near):
            return
        with self._changes:
            if scale is not _FIRST:
                merge_moments(self._gathered, moments_of(near))
                return
            self._first_rows = np.concatenate([self._first_rows, near])
            if len(self._first_rows) >= ROWS_AT_FIRST:
                self._judge_first_rows()

    def _judge_first_rows(self) -> None:
        scale, rows = self.scale, self._first_rows
        near = _near_median(rows) if scale is _FIRST else scale.near(rows)
        merge_moments(self._gathered, moments_of(near))
        self._first_rows = self._first_rows[:0]

    def use(self, statistics: FloatVector) -> None:
        """Filter by ``statistics`` [length] from now on, unless nothing has been seen yet."""
        scale = self.scale_of(statistics)
        if scale is not _FIRST:
            self.scale = scale

    def scale_of(self, statistics: FloatVector) -> Scale:
        """Return what ``statistics`` [length] filter by."""
        moments = unpacked(statistics)
        if moments[0] < 2:
            return _FIRST
        mean, deviation = np.split(moments[1:], 2)
        center = mean if self._subtracts_mean else np.zeros_like(mean)
        size = np.hypot(deviation, mean - center)
        varies = size > LEAST_PART * np.abs(mean)
        size = np.where(varies, size, np.where(mean == 0, 1.0, np.abs(mean)))
        reach = size * MOST_GATHERED_DEVIATIONS
        return Scale(
            lowest=np.maximum(center - reach, -LARGEST),
            highest=np.minimum(center + reach, LARGEST),
            center=center,
            factor=np.reciprocal(size),
        )


def _near_median(rows: DoubleArray) -> DoubleArray:
    """Return rows [B, D] without what lies too far away from most of them."""
    center = np.median(rows, axis=0)
    deviation = np.median(np.abs(rows - center), axis=0)
    reach = MOST_GATHERED_DEVIATIONS * np.maximum(deviation, np.abs(center))
    reach[reach == 0] = MOST_AT_FIRST
    near: DoubleArray = np.clip(rows, center - reach, center + reach)
    return near

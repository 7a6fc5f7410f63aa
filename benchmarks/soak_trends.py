"""How memory changes with time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: A run of so many minutes is long.
LONG_MINUTES = 20.0

#: What counts as flat in short runs: a share of the memory, or so much in all, where that is more.
SMALL_SHARE, SMALL_MIB = 0.02, 1.0

#: What memory may grow by in long runs: caches and the heap of a server still settle.
MOST_MIB_AN_HOUR = 16.0


@dataclass(frozen=True)
class Trend:
    """How the memory of a process has changed: the slope, and its standard error."""

    name: str
    minutes: float
    mib: float
    mib_an_hour: float
    error: float

    @property
    def is_flat(self) -> bool:
        """Whether the slope is within twice its error, or small.

        In a short run, what comes to 2% of the memory in all is small, or to 1 MiB of a process of
        few; in a long one, that hides a leak, and ``MOST_MIB_AN_HOUR`` counts.
        """
        if self.minutes >= LONG_MINUTES:
            small = MOST_MIB_AN_HOUR
        else:
            small = max(SMALL_SHARE * self.mib, SMALL_MIB) * 60 / self.minutes
        return self.mib_an_hour <= max(2 * self.error, small)


def trend_of(name: str, seconds: Sequence[float], mib: Sequence[float]) -> Trend:
    """Return the line through what a process took at these moments (ordinary least squares)."""
    hours, taken = np.array(seconds) / 3600, np.array(mib)
    hours -= hours.mean()
    square = float((hours**2).sum())
    slope = float((hours * (taken - taken.mean())).sum()) / square
    rest = taken - taken.mean() - slope * hours
    error = float(np.sqrt((rest**2).sum() / (len(taken) - 2) / square))
    minutes = (seconds[-1] - seconds[0]) / 60
    return Trend(name, minutes, float(taken.mean()), slope, error)

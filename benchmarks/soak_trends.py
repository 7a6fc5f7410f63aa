"""How memory changes with time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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
        """Whether the slope is within twice its error, or comes to 2% of the memory in all."""
        return self.mib_an_hour <= max(2 * self.error, 0.02 * self.mib * 60 / self.minutes)


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

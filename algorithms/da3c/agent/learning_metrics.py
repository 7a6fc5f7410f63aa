"""Means of what updates report: hundreds of updates a second make one point a second."""

import time
from collections.abc import Mapping

from relaax.algorithm_base import Metrics


class LearningMetrics:
    """Averages named values and stores each mean once an interval."""

    def __init__(self, metrics: Metrics, interval_s: float = 1.0) -> None:
        self._metrics = metrics
        self._interval_s = interval_s
        self._start_again()

    def add(self, values: Mapping[str, float], global_t: int) -> None:
        """Add one update's values; store the means at ``global_t`` when the interval is over."""
        self._count += 1
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        if time.monotonic() >= self._due:
            for name, total in self._sums.items():
                self._metrics.scalar(name, total / self._count, x=global_t)
            self._start_again()

    def _start_again(self) -> None:
        self._sums: dict[str, float] = {}
        self._count = 0
        self._due = time.monotonic() + self._interval_s

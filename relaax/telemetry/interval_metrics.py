"""One point a second, made of events that come thousands of times a second."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.telemetry.metrics import Metrics


class IntervalMetrics:
    """Gathers values by name, and stores their summary once an interval."""

    def __init__(
        self, metrics: Metrics, interval_s: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._metrics = metrics
        self._interval_s = interval_s
        self._clock = clock
        self._began_at = clock()
        self._due = self._began_at + interval_s
        self._sums: dict[str, tuple[float, int]] = {}
        self._amounts: dict[str, float] = {}
        self._distributions: dict[str, list[float]] = {}

    def add(self, name: str, value: float, times: int = 1) -> None:
        """Add a value, so many times; the mean is stored."""
        total, count = self._sums.get(name, (0.0, 0))
        self._sums[name] = (total + value * times, count + times)

    def per_second(self, name: str, amount: float) -> None:
        """Add an amount; the sum by second is stored, from then on once an interval.

        Of busy seconds it is the share of all time, from 0 to 1. After half an interval or less
        there is too little data, and nothing is stored.
        """
        self._amounts[name] = self._amounts.get(name, 0.0) + amount

    def spread(self, name: str, values: Iterable[float]) -> None:
        """Add values; mean, min, max, and the 50th and 99th percentiles are stored."""
        self._distributions.setdefault(name, []).extend(values)

    def store_if_due(self, x: float | None = None) -> None:
        """Store at ``x`` when the interval is over."""
        if self._clock() >= self._due:
            self.store(x)

    def store(self, x: float | None = None) -> None:
        """Store the summaries at ``x``, the global step by default, and start again."""
        for name, (total, count) in self._sums.items():
            self._metrics.scalar(name, total / count, x)
        for name, values in self._distributions.items():
            self._store_spread(name, np.array(values), x)
        now = self._clock()
        self._store_rates(now - self._began_at, x)
        self._sums.clear()
        self._distributions.clear()
        self._began_at, self._due = now, now + self._interval_s

    def _store_rates(self, seconds: float, x: float | None) -> None:
        for name, amount in self._amounts.items():
            if seconds > self._interval_s / 2:
                self._metrics.scalar(name, amount / seconds, x)
            self._amounts[name] = 0.0

    def _store_spread(self, name: str, values: npt.NDArray[Any], x: float | None) -> None:
        if not len(values):
            return
        p50, p99 = np.percentile(values, (50, 99))
        self._metrics.scalar(name, float(values.mean()), x)
        for label, value in (
            ("min", values.min()),
            ("p50", p50),
            ("p99", p99),
            ("max", values.max()),
        ):
            self._metrics.scalar(f"{name} {label}", float(value), x)

"""Figures in Prometheus' types, their names and units; counts of saves.

Names follow Prometheus' conventions: ``relaax_`` first, base units, ``_total`` behind counts that
only grow. See https://prometheus.io/docs/practices/naming/.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

__all__ = ["Metric", "SaveRecord", "counter", "counters", "gauge", "gauges", "histogram"]

_PREFIX = "relaax_"


def gauge(name: str, means: str, value: float) -> Metric:
    """Return a figure that goes up and down."""
    return GaugeMetricFamily(_PREFIX + name, means, value=value)


def gauges(name: str, means: str, label: str, values: Mapping[str, float]) -> Metric:
    """Return gauges of one name, told apart by ``label``."""
    return _filled(GaugeMetricFamily(_PREFIX + name, means, labels=[label]), values)


def counter(name: str, means: str, value: float) -> Metric:
    """Return a figure that only grows while the server runs."""
    return CounterMetricFamily(_PREFIX + name, means, value=value)


def counters(name: str, means: str, label: str, values: Mapping[str, float]) -> Metric:
    """Return counters of one name, told apart by ``label``."""
    return _filled(CounterMetricFamily(_PREFIX + name, means, labels=[label]), values)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Mapping[str, float]) -> Metric:
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def histogram(name: str, means: str, bounds: Sequence[float], values: Sequence[float]) -> Metric:
    """Return a distribution: ``values`` are those of a ``Histogram`` with these ``bounds``."""
    return _with_cells(HistogramMetricFamily(_PREFIX + name, means), [], bounds, values)


def histograms(
    name: str,
    means: str,
    label: str,
    bounds: Sequence[float],
    values: Mapping[str, Sequence[float]],
) -> Metric:
    """Return distributions of one name, told apart by ``label``."""
    family = HistogramMetricFamily(_PREFIX + name, means, labels=[label])
    for key, cells in values.items():
        _with_cells(family, [key], bounds, cells)
    return family


def _with_cells(
    family: HistogramMetricFamily,
    labels: Sequence[str],
    bounds: Sequence[float],
    cells: Sequence[float],
) -> Metric:
    total, *counts = cells
    names = [*(f"{bound:g}" for bound in bounds), "+Inf"]
    family.add_metric(labels, list(zip(names, accumulate(counts), strict=True)), total)
    return family


class SaveRecord:
    """Counts saves and their failures; for several threads.

    ``interval_s`` is the interval of saves, if there should be any.
    """

    def __init__(
        self, interval_s: float = math.inf, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._lock = threading.Lock()
        self._saved = self._failed = 0
        self._saved_at = clock()

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Count a save, which is made inside."""
        try:
            yield
        except BaseException:
            self.note_failed()
            raise
        self.note_saved()

    @property
    def saved(self) -> int:
        """How many were saved."""
        return self._saved

    def note_saved(self) -> None:
        """Count a save."""
        with self._lock:
            self._saved += 1
        self.note_current()

    def note_failed(self) -> None:
        """Count a failure."""
        with self._lock:
            self._failed += 1

    def note_current(self) -> None:
        """Take note that there is nothing to be saved."""
        self._saved_at = self._clock()

    def counts(self) -> list[Metric]:
        """Return the interval for Prometheus if another process decides when to save."""
        return [
            counter("checkpoints_saved", "Checkpoints that were saved", self._saved),
            counter("checkpoint_failures", "Checkpoints that could not be saved", self._failed),
        ]

    def figures(self) -> Iterable[Metric]:
        """Return figures for Prometheus."""
        age_s = self._clock() - self._saved_at
        return [
            *self.counts(),
            gauge(
                "checkpoint_age_seconds",
                "Since the last checkpoint was saved, or since the start",
                age_s,
            ),
            gauge(
                "checkpoint_interval_seconds",
                "How often a checkpoint should be saved",
                self._interval_s,
            ),
        ]

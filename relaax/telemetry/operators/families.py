"""Figures in Prometheus' types: their names and units.

Names follow Prometheus' conventions: ``relaax_`` first, base units, ``_total`` behind counts that
only grow. See https://prometheus.io/docs/practices/naming/.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

__all__ = ["Metric", "counter", "counters", "gauge", "gauges", "histogram"]

_PREFIX = "relaax_"


def gauge(name: str, means: str, value: float) -> Metric:
    """Return a figure that goes up and down."""
    return GaugeMetricFamily(_PREFIX + name, means, value=value)


def gauges(name: str, means: str, label: str, values: Mapping[str, float]) -> Metric:
    """Return gauges of one name, told apart by ``label``."""
    family = GaugeMetricFamily(_PREFIX + name, means, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def counter(name: str, means: str, value: float) -> Metric:
    """Return a figure that only grows while the server runs."""
    return CounterMetricFamily(_PREFIX + name, means, value=value)


def counters(name: str, means: str, label: str, values: Mapping[str, float]) -> Metric:
    """Return counters of one name, told apart by ``label``."""
    family = CounterMetricFamily(_PREFIX + name, means, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def histogram(
    name: str, means: str, bounds: Sequence[float], counts: Iterable[float], total: float
) -> Metric:
    """Return a distribution: ``counts`` of the values within each of ``bounds``, and above all.

    ``total`` is the sum of all values.
    """
    family = HistogramMetricFamily(_PREFIX + name, means)
    labels = [*(f"{bound:g}" for bound in bounds), "+Inf"]
    family.add_metric([], list(zip(labels, accumulate(counts), strict=True)), total)
    return family

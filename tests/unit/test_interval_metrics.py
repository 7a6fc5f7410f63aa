import pytest

from relaax.interval_metrics import IntervalMetrics
from relaax.metrics import Metrics


class Stored(Metrics):
    def __init__(self):
        self.values = {}

    def scalar(self, name, y, x=None):
        self.values.setdefault(name, []).append((y, x))


@pytest.fixture(name="clock")
def _clock():
    return [0.0]


@pytest.fixture(name="stored")
def _stored():
    return Stored()


@pytest.fixture(name="metrics")
def _metrics(stored, clock):
    return IntervalMetrics(stored, interval_s=1.0, clock=lambda: clock[0])


def test_the_mean_is_stored_once_an_interval(metrics, stored, clock):
    for value, time in ((1.0, 0.2), (3.0, 0.9)):
        clock[0] = time
        metrics.add("loss", value)
        metrics.store_if_due(7)
    assert stored.values == {}
    clock[0] = 1.0
    metrics.store_if_due(8)
    metrics.add("loss", 10.0)
    metrics.store_if_due(9)
    assert stored.values == {"loss": [(2.0, 8)]}
    metrics.store()
    assert stored.values == {"loss": [(2.0, 8), (10.0, None)]}


def test_of_a_spread_mean_extremes_and_percentiles_are_stored(metrics, stored):
    metrics.spread("wait", range(51))
    metrics.spread("wait", range(51, 101))
    metrics.store()
    found = {name: y for name, ((y, _),) in stored.values.items()}
    assert found == {
        "wait": 50.0, "wait min": 0.0, "wait p50": 50.0, "wait p99": 99.0, "wait max": 100.0,
    }  # fmt: skip


def test_an_empty_spread_stores_nothing(metrics, stored):
    metrics.spread("wait", ())
    metrics.store()
    assert stored.values == {}

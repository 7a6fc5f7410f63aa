import pytest
from stored_metrics import StoredMetrics

from relaax.telemetry.interval_metrics import IntervalMetrics


@pytest.fixture(name="clock")
def _clock():
    return [0.0]


@pytest.fixture(name="stored")
def _stored():
    return StoredMetrics()


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


class TestRates:
    def test_an_amount_is_stored_by_second_of_the_time_that_has_passed(
        self, metrics, stored, clock
    ):
        for amount in (1, 2, 3):
            metrics.per_second("bytes", amount)
        clock[0] = 1.5
        metrics.store_if_due()
        assert stored.values == {"bytes": [(4.0, None)]}

    def test_where_nothing_happens_any_more_it_falls_to_zero(self, metrics, stored, clock):
        metrics.per_second("bytes", 5)
        for clock[0] in (1.0, 2.0):
            metrics.store_if_due()
        assert [y for y, _ in stored.values["bytes"]] == [5.0, 0.0]

    def test_a_moment_after_the_last_time_there_is_too_little_to_tell(self, metrics, stored, clock):
        metrics.per_second("bytes", 5)
        clock[0] = 0.1
        metrics.store()
        assert stored.values == {}

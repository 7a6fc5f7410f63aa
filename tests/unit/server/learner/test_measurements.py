"""What a learner measures of itself: Surreal's list (seed 000, "Learner")."""

import pytest
from stored_metrics import StoredMetrics

from relaax.server.learner.loop import LearnerMeasurements
from relaax.telemetry.interval_metrics import IntervalMetrics


class Measured:
    def __init__(self):
        self.now = 0.0
        self.stored = StoredMetrics()
        means = IntervalMetrics(self.stored, interval_s=1.0, clock=self.clock)
        self.measurements = LearnerMeasurements(means, self.clock)

    def clock(self):
        return self.now

    def phase(self, name, seconds):
        with self.measurements.phase(name):
            self.now += seconds

    def iteration(self, fetch_s, learn_s, items=8):
        self.phase("fetch", fetch_s)
        self.phase("learn", learn_s)
        self.measurements.updated(items)


@pytest.fixture(name="measured")
def _measured():
    return Measured()


def test_times_are_means_and_rates_are_those_of_all_time(measured):
    measured.iteration(0.5, 0.25)
    measured.iteration(0.5, 0.75)
    measured.measurements.store_if_due()
    found = measured.stored.newest()
    assert found["learner/fetch time"] == 0.5
    assert found["learner/learn time"] == 0.5
    assert found["learner/iteration time"] == 1.0
    assert found["learner/updates per second"] == 1.0
    assert found["learner/items per second"] == 8.0


def test_loads_are_shares_of_all_time_in_percent_and_no_more_than_100_together(measured):
    measured.iteration(0.5, 0.25)
    measured.phase("publish", 0.25)
    measured.now += 1.0
    measured.measurements.store_if_due()
    found = measured.stored.newest()
    assert found["learner/fetch load"] == 25.0
    assert found["learner/learn load"] == 12.5
    assert found["learner/publish load"] == 12.5


def test_a_phase_that_raises_is_measured_too(measured):
    def fail():
        with measured.measurements.phase("publish"):
            measured.now += 2.0
            raise OSError("away")

    with pytest.raises(OSError, match="away"):
        fail()
    measured.measurements.store()
    assert measured.stored.newest()["learner/publish time"] == 2.0


def test_while_no_batch_comes_only_waiting_is_stored(measured):
    measured.iteration(0.5, 0.5)
    measured.measurements.store_if_due()
    measured.phase("fetch", 1.0)
    measured.measurements.store_if_due()
    found = measured.stored.newest()
    assert found["learner/updates per second"] == 0.0
    assert found["learner/fetch load"] == 100.0
    assert found["learner/learn load"] == 0.0


def test_a_loop_that_is_made_again_goes_on_with_the_totals(measured):
    measured.iteration(0.5, 0.25)
    again = Measured()
    again.iteration(0.5, 0.5)
    again.measurements.go_on_from(measured.measurements)
    assert again.measurements.seconds == {"fetch": 1.0, "learn": 0.75, "publish": 0.0}
    assert (again.measurements.updates, again.measurements.items) == (2, 16)

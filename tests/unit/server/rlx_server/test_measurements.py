"""What a worker measures of itself."""

import numpy as np
import pytest
from served_worker import BinaryClient, StoredMetrics

from relaax.server.rlx_server.tally import private_row
from relaax.server.rlx_server.worker import loop, measurements
from relaax.server.rlx_server.worker.measurements import Measurements
from relaax.steps import START


class Clock:
    """Seconds that a test sets, in the place of the module ``time``."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture(name="clock")
def _clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(measurements, "time", clock)
    return clock


def evaluate(measured, clock, begins_at, ends_at, size):
    """Evaluate for messages that came at 100."""
    clock.now = ends_at
    measured.add_evaluation(100.0, begins_at, size)


def test_the_latency_is_the_mean_over_messages(clock):
    stored = StoredMetrics()
    measured = Measurements(stored, shared=False, row=private_row())
    clock.now = 100.25
    measured.add_turn(100.0, messages=3)
    clock.now = 100.75
    measured.add_turn(99.5, messages=1)
    measured.store()
    assert stored.values == [("inference/act latency", 0.5, None)]


def test_shared_workers_measure_their_evaluations(clock):
    stored = StoredMetrics()
    measured = Measurements(stored, shared=True, row=private_row())
    evaluate(measured, clock, 100.5, 101.0, size=4)
    evaluate(measured, clock, 101.0, 103.0, size=2)
    measured.add_turn(100.0, messages=2)
    measured.store()
    found = {name: y for name, y, _ in stored.values}
    assert found["inference/batch size"] == 3
    assert (found["inference/batch size min"], found["inference/batch size max"]) == (2, 4)
    assert (found["inference/queue wait min"], found["inference/queue wait max"]) == (0.5, 1.0)
    assert (found["inference/time min"], found["inference/time max"]) == (0.5, 2.0)


def test_a_worker_of_one_connection_does_not(clock):
    stored = StoredMetrics()
    measured = Measurements(stored, shared=False, row=private_row())
    evaluate(measured, clock, 100.5, 101.0, size=4)
    measured.add_turn(100.0, messages=2)
    measured.store()
    assert {name for name, _, _ in stored.values} == {"inference/act latency"}


def test_a_turn_without_an_evaluation_leaves_nothing_of_it(clock):
    stored = StoredMetrics()
    measured = Measurements(stored, shared=True, row=private_row())
    measured.add_turn(100.0, messages=1)
    measured.store()
    assert {name for name, _, _ in stored.values} == {"inference/act latency"}


def test_measurements_are_stored_once_a_second(clock):
    stored = StoredMetrics()
    measured = Measurements(stored, shared=False, row=private_row())
    for now in (100.5, 100.99, 101.5, 102.0):
        clock.now = now
        measured.add_turn(now - 0.25, messages=1)
    assert stored.values == [("inference/act latency", 0.25, None)]


def environments_of(stored):
    assert len({name.rpartition(" ")[2] for name, _, _ in stored.values}) <= 1  # a worker's name
    return [y for name, y, _ in stored.values if name.startswith("server/environments of ")]


def connections_of(stored):
    return [y for name, y, _ in stored.values if name.startswith("server/connections of ")]


def test_the_number_of_environments_is_stored_when_it_changes_and_every_ten_seconds(clock):
    stored = StoredMetrics()
    measured = Measurements(stored, shared=False, row=private_row())
    counts = {101: 0, 102: 4, 103: 4, 104: 5, 113.5: 5, 114: 5, 115: 0, 130: 0}
    for clock.now, count in counts.items():
        measured.note_connected(count, connections=1 if count else 0)
    assert environments_of(stored) == [4, 5, 5, 0]
    assert connections_of(stored) == [1, 1, 1, 0]


def test_another_connection_for_the_same_number_of_environments_is_stored_too(clock):
    stored = StoredMetrics()
    measured = Measurements(stored, shared=False, row=private_row())
    for clock.now, connections in ((102, 1), (104, 2)):
        measured.note_connected(4, connections)
    assert connections_of(stored) == [1, 2]


def test_a_worker_that_ends_says_that_its_environments_are_gone(clock):
    stored = StoredMetrics()
    measured = Measurements(stored, shared=False, row=private_row())
    clock.now = 102.0
    measured.note_connected(2, 1)
    measured.close()
    assert environments_of(stored) == [2, 0]


def test_the_number_of_environments_is_stored_though_every_turn_takes_long(serve, monkeypatch):
    monkeypatch.setattr(loop, "LONG_TURN_S", -1.0)
    monkeypatch.setattr(loop, "SWEEP_S", 0.0)
    monkeypatch.setattr(measurements, "INTERVAL_S", 0.0)
    served = serve()
    BinaryClient(served, environments=3).ask(range(3), [START] * 3, [0] * 3, np.zeros(3))
    (count,) = {y for name, y, _ in served.stored.values if name.startswith("server/environments")}
    assert count == 3


def test_the_metrics_of_a_worker_fit_together(serve):
    served = serve()
    client = BinaryClient(served, environments=3)
    client.ask(range(3), [START] * 3, [0] * 3, np.zeros(3))
    for _ in range(10):
        client.ask(range(3), [0] * 3, [0] * 3, np.zeros(3))
    served.end()
    found = {name: y for name, y, _ in served.stored.values}
    assert found["inference/batch size min"] == found["inference/batch size max"] == 3
    for name in ("inference/queue wait", "inference/time"):
        assert 0 <= found[f"{name} min"] <= found[f"{name} p50"] <= found[f"{name} p99"]
        assert found[f"{name} p99"] <= found[f"{name} max"]
    assert found["inference/time"] <= found["inference/act latency"]

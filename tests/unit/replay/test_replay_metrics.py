"""The metrics of a replay: Surreal's list (seed 000, "Buffer"), made of what the replay counts."""

import numpy as np
import pytest
from replay_cases import SCHEMA, steps
from stored_metrics import StoredMetrics

from relaax.replay.limiter import Limiter
from relaax.replay.process.replay_metrics import ReplayMetrics
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.views import Transitions
from relaax.telemetry.live_lines import LiveLine


class Case:
    def __init__(self, stats):
        self.now, self.stats = 100.0, stats
        self.stored = StoredMetrics()
        self.metrics = ReplayMetrics(lambda: self.stats, self.stored, lambda: self.now)

    def after(self, seconds, **stats):
        self.now += seconds
        self.stats = {name.replace("_", " "): value for name, value in stats.items()}
        self.metrics.store()
        return self.stored.newest()


@pytest.fixture(name="replay")
def _replay():
    table = TableSpec(Transitions(1, 0.99), "uniform", Limiter(min_items=1))
    return ReplaySpec(SCHEMA, 256, {"all": table}).make(np.random.default_rng(1), 60.0)


def test_the_metrics_of_two_seconds_of_a_real_replay(replay):
    case = Case(replay.stats())
    replay.open_writer("one", SCHEMA)
    replay.append("one", 0, 0, *steps(0, 50))
    for _ in range(5):
        replay.sample("all", 20, 0.0)
    found = case.after(2.0, **replay.stats())
    assert found["replay/steps"] == found["replay/steps stored"] == 50
    assert found["replay/fill"] == 100 * 50 / 256
    assert found["replay/items drawn"] == 100
    assert found["replay/sample requests"] == 5
    assert found["replay/steps in per second"] == 25.0
    assert found["replay/items out per second"] == 50.0
    assert found["replay/sample requests per second"] == 2.5
    assert found["replay/lifetime utilization"] == 200.0
    assert found["replay/current utilization"] == 200.0
    assert found["replay/insert time"] > 0
    assert found["replay/sample time"] > 0
    assert found["replay/sample load"] == pytest.approx(250 * found["replay/sample time"])
    assert found["replay/serialize load"] == 0.0


def test_rates_and_times_are_those_since_the_time_before():
    case = Case(
        {"steps stored": 1000, "items drawn": 5000, "insert calls": 7, "insert seconds": 3.0}
    )
    found = case.after(
        4.0, **{"steps stored": 1200, "items drawn": 5800},
        insert_calls=11, insert_seconds=3.5,
    )  # fmt: skip
    assert found["replay/steps in per second"] == 50.0
    assert found["replay/items out per second"] == 200.0
    assert found["replay/current utilization"] == 400.0
    assert found["replay/lifetime utilization"] == pytest.approx(100 * 5800 / 1200)
    assert found["replay/insert time"] == 0.125
    assert found["replay/insert load"] == 12.5


def test_while_nothing_comes_there_are_rates_of_zero_and_no_times():
    case = Case({"steps stored": 10})
    found = case.after(1.0, steps_stored=10)
    assert found["replay/steps in per second"] == 0.0
    assert found["replay/insert load"] == 0.0
    assert "replay/insert time" not in found
    assert "replay/current utilization" not in found


def test_two_looks_at_once_tell_nothing():
    case = Case({"steps stored": 10})
    assert case.after(0.01, steps_stored=500) == {}
    assert case.after(0.99, steps_stored=500)["replay/steps in per second"] == 490.0


def test_a_replay_that_has_started_again_has_no_negative_rates(caplog):
    case = Case({"steps stored": 1000})
    found = case.after(1.0, steps_stored=20)
    assert found["replay/steps stored"] == 20
    assert not any("per second" in name or "load" in name for name in found)
    assert "started again" in caplog.text
    assert case.after(1.0, steps_stored=30)["replay/steps in per second"] == 10.0


def test_a_live_line_has_sizes_and_rates(replay):
    case = Case(replay.stats())
    replay.open_writer("one", SCHEMA)
    replay.append("one", 0, 0, *steps(0, 50))
    replay.sample("all", 20, 0.0)
    case.after(2.0, **replay.stats())
    line = LiveLine("replay", tuple(case.metrics.figures()))
    assert str(line) == "replay: steps stored 50 of 256 | steps/s 25 | items/s 10"

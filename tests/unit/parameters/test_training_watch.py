"""A learner counts steps at the parameter server, and asks whether the training is over."""

import threading
import time
from contextlib import closing

import pytest

from relaax.algorithm_base import Evaluations, Phase
from relaax.errors import Abandoned, BridgeError
from relaax.parameters import training_watch
from relaax.parameters.training_watch import TrainingWatch


class Bridge:
    def __init__(self):
        self.scores = []
        self.added, self.current, self.is_away = [], Phase.TRAINING, False
        self.was_asked = threading.Semaphore(0)

    def add(self, steps):
        if self.is_away:
            self.was_asked.release()
            raise BridgeError("away")
        self.added.append(steps)
        return sum(self.added)

    def evaluations(self, after):
        return Evaluations(len(self.scores), self.scores[after:])

    def phase(self):
        self.was_asked.release()
        if self.is_away:
            raise BridgeError("away")
        return self.current

    def wait(self, times=2):
        """Wait until it has been asked so often from now on."""
        while self.was_asked.acquire(blocking=False):
            pass
        for _ in range(times):
            assert self.was_asked.acquire(timeout=5)


@pytest.fixture(autouse=True)
def _short_interval(monkeypatch):
    monkeypatch.setattr(training_watch, "INTERVAL_S", 0.001)


def test_every_step_is_counted_once():
    bridge, steps, counted = Bridge(), [3], []
    with closing(TrainingWatch(bridge, lambda: steps[0], on_counted=counted.append)):
        bridge.wait()
        steps[0] = 10
        bridge.wait()
    assert bridge.added == counted == [3, 7]


def test_steps_that_come_while_the_parameter_server_is_away_are_counted_when_it_is_back(caplog):
    bridge, steps = Bridge(), [5]
    bridge.is_away = True
    with closing(TrainingWatch(bridge, lambda: steps[0])):
        bridge.wait()
        steps[0] = 8
        bridge.is_away = False
        bridge.wait()
    assert sum(bridge.added) == 8
    assert "away" in caplog.text


@pytest.mark.parametrize(("phase", "is_over"), [(Phase.TRAINING, False), (Phase.SERVING, True),
                                                (Phase.CLOSING, True)])  # fmt: skip
def test_a_training_that_is_served_or_closed_is_over(phase, is_over):
    bridge = Bridge()
    with closing(TrainingWatch(bridge, lambda: 0)) as watch:
        assert not watch.is_over
        bridge.current = phase
        bridge.wait()
        assert watch.is_over == is_over
    assert bridge.added == []


def test_each_score_of_an_evaluation_is_handed_on_once():
    bridge, taken = Bridge(), []
    with closing(TrainingWatch(bridge, lambda: 0, lambda *score: taken.append(score))):
        bridge.wait()
        bridge.scores = [(10, 1.0), (20, 2.0)]
        bridge.wait()
        bridge.scores.append((30, 3.0))
        bridge.wait()
    assert taken == [(10, 1.0), (20, 2.0), (30, 3.0)]


def test_scores_that_came_before_a_learner_started_are_none_of_its_own():
    bridge, taken = Bridge(), []
    bridge.scores = [(10, 1.0), (20, 2.0)]
    with closing(TrainingWatch(bridge, lambda: 0, lambda *score: taken.append(score))):
        bridge.wait()
        bridge.scores.append((15, 3.0))
        bridge.wait()
    assert taken == [(15, 3.0)]


def test_what_was_counted_before_is_told_once_and_before_anything_is_added():
    bridge, before = Bridge(), []
    bridge.added.append(40)
    with closing(TrainingWatch(bridge, lambda: 7, on_begin=before.append)):
        bridge.wait()
    assert before == [40]
    assert sum(bridge.added) == 47


def wait_until_abandoned(watch):
    deadline = time.monotonic() + 20
    while not watch.is_abandoned:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_training_is_abandoned_when_the_parameter_server_is_away_for_long():
    bridge = Bridge()
    with closing(TrainingWatch(bridge, lambda: 1, give_up_s=0.2)) as watch:
        bridge.wait()
        watch.require_known()
        bridge.is_away = True
        wait_until_abandoned(watch)
        with pytest.raises(Abandoned, match=r"was away for 0\.2 s \(--give-up\)"):
            watch.require_known()


def test_a_parameter_server_that_has_not_answered_yet_is_waited_for():
    bridge = Bridge()
    bridge.is_away = True
    with closing(TrainingWatch(bridge, lambda: 1, give_up_s=60.0)) as watch:
        bridge.wait()
        assert not watch.is_abandoned


def test_a_training_is_abandoned_when_the_parameter_server_never_answers():
    bridge = Bridge()
    bridge.is_away = True
    with closing(TrainingWatch(bridge, lambda: 1, give_up_s=0.01)) as watch:
        wait_until_abandoned(watch)
        with pytest.raises(Abandoned, match=r"could not be used within 0\.01 s of the start"):
            watch.require_known()

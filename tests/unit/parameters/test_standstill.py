"""A training that makes no progress says which part waits for which."""

import pytest

from relaax.parameters.process.standstill import Standstill
from relaax.parameters.process.training_figures import TrainingFigures
from relaax.telemetry.metrics import LEARNER, Metrics, NullMetrics, WaitReport


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


class Watched:
    """A standstill watch, reports to it, and a clock that moves by seconds that are asked for."""

    def __init__(self, has_learner=False, rollout_steps=5, learns=True):
        self.clock = Clock()
        self.standstill = Standstill(has_learner, rollout_steps, learns, self.clock)
        self.metrics = TrainingFigures(NullMetrics(), self.standstill, 1)
        self.reports = {}

    def after(self, seconds, steps=0, updates=None, environments=1, **waits):
        """Let seconds pass, in which processes report why they wait; return what is said then."""
        for _ in range(round(seconds)):
            self.clock.now += 1
            for part, reason in waits.items():
                self._report(part).note(reason)
            self.standstill.look(steps, updates, environments)
        return self.standstill.said

    def _report(self, part):
        name = LEARNER if part == "learner" else part
        return self.reports.setdefault(part, WaitReport(self.metrics, name, self.clock))


class Recorded(Metrics):
    def __init__(self, into):
        self._into = into

    def scalar(self, name, y, x=None):
        self._into.append((name, y, x))


def test_nothing_is_said_while_steps_are_counted():
    watched = Watched()
    assert [watched.after(10, steps=steps) for steps in range(10)] == [""] * 10


def test_a_training_without_environments_says_so():
    watched = Watched()
    assert watched.after(29, environments=0) == ""
    yet = "no environment has connected to an RLX server yet, and no actor has sent a step"
    assert watched.after(3, environments=0) == f"no step for 31 s: {yet}"


def test_environments_that_have_gone_are_missed():
    watched = Watched()
    watched.after(1, steps=1)
    said = watched.after(40, steps=1, environments=0)
    assert said.endswith("no environment is connected to an RLX server any more")


def test_environments_that_send_nothing_are_named():
    said = Watched().after(40, environments=3)
    assert said.endswith("3 environments are connected, and no reward comes: "
                         "the simulator is busy, or hangs")  # fmt: skip


def test_what_waits_for_the_learner_s_replay_is_named_with_its_reason():
    said = Watched(has_learner=True).after(40, actor="host:1 takes no steps: the tables are full")
    assert "actor waits: host:1 takes no steps: the tables are full" in said


def test_a_plant_that_takes_a_step_a_minute_is_not_said_to_stand_still():
    watched = Watched()
    for steps in (1, 2):
        watched.after(60, steps=steps)
    assert [watched.after(60, steps=steps) for steps in range(3, 6)] == [""] * 3
    assert watched.after(180, steps=5).startswith("no step for 2")


def test_a_learner_that_gets_too_few_steps_is_named_though_steps_are_counted():
    watched = Watched(has_learner=True)
    said = [
        watched.after(1, steps=100 + second, updates=7, learner="500 steps are too few")
        for second in range(40)
    ]
    assert said[-1].endswith("the learner waits: 500 steps are too few")
    assert said[-1].startswith("no update for 3")


def test_a_learner_whose_steps_become_more_is_not_said_to_stand_still():
    watched = Watched(has_learner=True)
    for steps in range(200):
        said = watched.after(1, steps=steps, updates=0, learner=f"{steps} of 10,000 steps")
        assert said == ""


def test_a_learner_that_is_not_there_is_missed():
    watched = Watched(has_learner=True)
    for steps in range(40):
        said = watched.after(1, steps=steps, updates=0)
    assert "does relaax-learner run" in said


def test_workers_that_take_steps_and_send_no_gradient_are_named_once_an_update_is_due():
    watched = Watched(rollout_steps=5)
    for steps in range(200):
        said = watched.after(1, steps=steps, updates=3, environments=2)
        assert (said == "") == (steps <= 100)
    assert "199 steps came, and no worker sends a gradient" in said


def test_where_nothing_is_learnt_no_update_is_missed():
    watched = Watched(learns=False)
    assert {watched.after(1, steps=steps, updates=0) for steps in range(200)} == {""}


def test_neither_the_wait_for_the_first_step_nor_a_standstill_makes_it_patient():
    watched = Watched()
    watched.after(3600)
    for first in (1, 101):
        for steps in range(first, first + 10):
            assert watched.after(1, steps=steps) == ""
        assert watched.after(40, steps=first + 9).startswith("no step for ")


def test_a_training_that_goes_on_again_is_not_said_to_stand_still():
    watched = Watched()
    assert watched.after(40) != ""
    assert watched.after(1, steps=1) == ""


def test_the_log_says_it_once_a_minute(caplog):
    watched = Watched()
    watched.after(145, environments=0)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2


def test_the_figures_say_what_is_missing_and_for_how_long():
    watched = Watched()
    watched.after(40)
    (metric,) = watched.standstill.figures()
    assert metric.name == "relaax_standstill_seconds"
    assert {s.labels["without"]: s.value for s in metric.samples} == {"steps": 39, "updates": 0}


def test_a_report_comes_every_five_seconds_of_a_process_that_works_too():
    sent, clock = [], Clock()
    report = WaitReport(Recorded(sent), "the learner", clock)
    for _ in range(11):
        report.note("")
        clock.now += 1
    assert [y for _, y, _ in sent] == [0, 0]


@pytest.mark.parametrize("reason", ["one", "other"])
def test_a_report_says_how_long_one_reason_has_lasted(reason):
    sent, clock = [], Clock()
    report = WaitReport(Recorded(sent), "part", clock)
    for _ in range(6):
        report.note("one")
        clock.now += 1
    report.note("one")
    report.note(reason)
    clock.now += 5
    report.note(reason)
    assert sent[-1] == (f"server/wait of part: {reason}", 11 if reason == "one" else 5, None)

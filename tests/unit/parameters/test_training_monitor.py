"""The parameter-server process's main loop, with a small parameter server and short intervals."""

import itertools
import threading

import pytest

from relaax.algorithm_base import Metrics, NullMetrics, NullSaver, ParameterServerBase, Phase
from relaax.checkpoints import DirectoryStore
from relaax.errors import CheckpointError
from relaax.parameters.process import training_monitor
from relaax.parameters.process.return_curve import PlotLabels, ReturnCurve
from relaax.parameters.process.standstill import Standstill
from relaax.parameters.process.training_figures import TrainingFigures
from relaax.parameters.process.training_monitor import EndOfTraining, TrainingMonitor
from relaax.parameters.sender_totals import SenderTotals
from relaax.telemetry.metrics import EPISODE_REWARD


class Counting(ParameterServerBase):
    """Each call of ``global_t`` counts ten steps more; the training is over at ``last``."""

    def __init__(self, last=float("inf"), failing_saves=0, failure=None):
        super().__init__(None, NullSaver(), NullMetrics())
        self.steps, self.last = 0, last
        self.saved_at, self.failing_saves = [], failing_saves
        self.failure = failure or OSError("the disk is full")
        self.learns = True

    def restore_latest_checkpoint(self):
        raise AssertionError("restoring is done before the monitor starts")

    def save_checkpoint(self):
        if self.failing_saves:
            self.failing_saves -= 1
            raise self.failure
        self.saved_at.append(self.steps)

    def global_t(self):
        if self.learns:
            self.steps += 10
        return self.steps

    def bridge(self):
        raise AssertionError("the bridge is served already")

    def training_is_over(self):
        return self.steps >= self.last

    def stop_training(self):
        self.learns = False

    def max_global_step(self):
        return self.last


class RecordingBridge:
    def __init__(self, on_phase=lambda: None):
        self.events, self.on_phase = [], on_phase
        self.heard = iter([])

    def set_phase(self, phase):
        self.events.append(phase)
        self.on_phase()

    def refuse_calls(self):
        self.events.append("refuses calls")

    def all_know(self):
        return next(self.heard, True)

    def stop(self, grace_s):
        self.events.append("stopped")


@pytest.fixture(autouse=True)
def _short_intervals(monkeypatch):
    monkeypatch.setattr(training_monitor, "CHECK_INTERVAL_S", 0.001)
    monkeypatch.setattr(training_monitor, "CLOSING_PHASE_S", 0.001)
    monkeypatch.setattr(training_monitor, "HEARD_INTERVAL_S", 0.001)
    monkeypatch.setattr(training_monitor, "RATE_INTERVAL_S", 0.002)


class Case:
    def __init__(
        self, parameter_server, *, goal_return=None, interval_s=3600.0, keeps=False, metrics=None,
        **parts,
    ):  # fmt: skip
        self.parameter_server = parameter_server
        self.stop = threading.Event()
        self.bridge = RecordingBridge()
        self.figures = TrainingFigures(metrics or NullMetrics(), Standstill(has_learner=False), 3)
        self.monitor = TrainingMonitor(
            parameter_server, self.bridge, self.figures, SenderTotals(),
            goal_return=goal_return, checkpoint_interval_s=interval_s, keeps_serving=keeps,
            **parts,
        )  # fmt: skip

    def run(self):
        return self.monitor.run(self.stop)


def test_the_required_steps_end_the_training_with_a_checkpoint_and_an_announcement():
    case = Case(Counting(last=100))
    assert case.run() is EndOfTraining.STEPS
    assert case.bridge.events == [Phase.CLOSING, "stopped"]
    assert len(case.parameter_server.saved_at) == 1
    assert not case.parameter_server.learns


def test_the_training_does_not_end_while_a_shard_is_away():
    away = ["shard 2/2 is away"]
    case = Case(Counting(last=100), missing=lambda: away[0])
    case.monitor.begin()
    case.parameter_server.steps = 100
    assert case.monitor.check() is None
    away[0] = None
    assert case.monitor.check() is EndOfTraining.STEPS


def test_the_end_is_announced_until_all_have_heard_it():
    case = Case(Counting(last=100))
    case.bridge.heard = iter([False, False, False])
    case.run()
    assert next(case.bridge.heard, "asked until it was true") == "asked until it was true"


def test_one_who_never_hears_of_the_end_holds_nobody_up_for_ever(monkeypatch):
    monkeypatch.setattr(training_monitor, "LONGEST_CLOSING_PHASE_S", 0.02)
    case = Case(Counting(last=100))
    case.bridge.heard = itertools.repeat(False)
    assert case.run() is EndOfTraining.STEPS


def test_before_the_first_step_nothing_is_saved_at_the_interval():
    case = Case(Counting(), interval_s=0.002)
    case.parameter_server.learns = False  # so that it counts no steps
    threading.Timer(0.1, case.stop.set).start()
    case.run()
    assert case.parameter_server.saved_at == []


def test_a_mean_return_ends_the_training_once_enough_episodes_are_known():
    case = Case(Counting(), goal_return=5)
    for value in (9, 9):
        case.figures.scalar("episode/reward", value)
    threading.Timer(0.05, case.figures.scalar, ("episode/reward", 0)).start()
    assert case.run() is EndOfTraining.RETURN
    assert case.figures.returns.mean() == 6


def test_the_progress_says_how_many_episodes_a_goal_needs_until_they_are_there():
    case, needed = Case(Counting(), goal_return=100.0), []
    for _ in range(3):
        needed.append(case.monitor.progress().needed_episodes)
        case.figures.scalar(EPISODE_REWARD, 1.0)
    assert needed == [3, 3, 3]
    assert case.monitor.progress().needed_episodes is None
    assert Case(Counting()).monitor.progress().needed_episodes is None


def test_a_signal_saves_and_does_not_announce_an_end_to_the_workers():
    case = Case(Counting())
    threading.Timer(0.05, case.stop.set).start()
    assert case.run() is EndOfTraining.SIGNAL
    assert case.bridge.events == ["refuses calls", "stopped"]
    assert len(case.parameter_server.saved_at) == 1
    assert not case.parameter_server.learns


def test_a_signal_before_the_first_step_saves_nothing(capsys):
    """A checkpoint of nothing would refuse a configuration that is corrected afterwards."""
    parameter_server = Counting()
    parameter_server.learns = False
    case = Case(parameter_server)
    case.stop.set()
    assert case.run() is EndOfTraining.SIGNAL
    assert parameter_server.saved_at == []
    assert "no step was taken, and no checkpoint was saved" in capsys.readouterr().out


def test_a_training_that_misses_its_goal_says_so(capsys):
    case = Case(Counting(last=100), goal_return=475)
    case.figures.scalar("episode/reward", 20)
    assert case.run() is EndOfTraining.STEPS
    said = capsys.readouterr().out
    assert "the mean return is 20.0, not 475 as was the goal; weights" in said


def test_a_training_that_has_no_steps_left_says_what_lets_it_go_on(capsys):
    parameter_server = Counting(last=100)
    parameter_server.steps = 100
    assert Case(parameter_server).run() is EndOfTraining.STEPS
    assert "a larger max_global_step lets it go on" in capsys.readouterr().out


def test_a_server_that_keeps_serving_waits_for_a_signal():
    case = Case(Counting(last=50), keeps=True)
    case.bridge.on_phase = threading.Timer(0.05, case.stop.set).start
    assert case.run() is EndOfTraining.STEPS
    assert case.bridge.events == [Phase.SERVING, "stopped"]
    assert case.stop.is_set()


def test_checkpoints_are_written_at_intervals():
    case = Case(Counting(last=3000), interval_s=0.01)
    case.run()
    assert len(case.parameter_server.saved_at) > 2


class TestWhatIsPublished:
    """It is saved between checkpoints."""

    @pytest.fixture(name="saving")
    def _saving(self):
        return Saving(last=3000)

    def test_it_is_saved_from_time_to_time(self, saving):
        Case(saving, published_interval_s=0.003).run()
        assert saving.published > 2
        assert len(saving.saved_at) == 1

    def test_it_is_saved_less_often_where_that_takes_long(self, saving, monkeypatch):
        saving.takes_s = 0.05
        monkeypatch.setattr(training_monitor, "PUBLISHED_SHARE", 0.001)
        Case(saving, published_interval_s=0.001).run()
        assert saving.published == 1

    def test_it_is_not_saved_before_the_first_step(self, saving):
        saving.learns = False
        case = Case(saving, published_interval_s=0.001)
        threading.Timer(0.05, case.stop.set).start()
        case.run()
        assert saving.published == 0

    def test_a_failure_is_a_warning_and_is_not_tried_again_at_once(self, saving, caplog):
        saving.fails = True
        assert Case(saving, published_interval_s=0.001).run() is EndOfTraining.STEPS
        (record,) = caplog.records
        assert record.getMessage() == "published values are not saved: OSError: the disk is full"

    def test_after_a_failure_it_is_tried_again_before_the_next_checkpoint(
        self, saving, monkeypatch
    ):
        monkeypatch.setattr(training_monitor, "PUBLISHED_AGAIN_S", 0.01)
        saving.fails = True
        Case(saving, published_interval_s=0.001).run()
        assert saving.published > 1


class Saving(Counting):
    published, takes_s, fails = 0, 0.0, False

    def save_published(self):
        self.published += 1
        if self.fails:
            raise OSError("the disk is full")
        threading.Event().wait(self.takes_s)


class Typo(Exception):
    """What an algorithm's own code raises."""


def test_what_was_reached_is_saved_where_a_bridge_of_an_algorithm_cannot_refuse_calls(caplog):
    case = Case(Counting())
    case.bridge.refuse_calls = lambda: 1 / 0
    threading.Timer(0.05, case.stop.set).start()
    assert case.run() is EndOfTraining.SIGNAL
    assert len(case.parameter_server.saved_at) == 1
    assert not case.parameter_server.learns
    assert "refuse_calls failed: what is saved now may still change" in caplog.text


def test_what_was_reached_is_saved_where_the_algorithm_s_own_code_fails(caplog):
    parameter_server = Counting()
    over = iter([False, False])

    def training_is_over():
        for answer in over:
            return answer
        raise Typo("oops")

    parameter_server.training_is_over = training_is_over
    case = Case(parameter_server)
    with pytest.raises(Typo):
        case.run()
    assert len(parameter_server.saved_at) == 1
    assert not parameter_server.learns
    assert case.bridge.events == ["refuses calls", "stopped"]
    assert "saving what was reached" in caplog.text


def test_a_failing_stop_training_keeps_nothing_from_being_saved(caplog):
    parameter_server = Counting(last=500)

    def stop_training():
        raise Typo("oops")

    parameter_server.stop_training = stop_training
    assert Case(parameter_server).run() is EndOfTraining.STEPS
    assert len(parameter_server.saved_at) == 1
    assert "stop_training failed" in caplog.text


def test_training_goes_on_when_a_checkpoint_fails(caplog):
    case = Case(Counting(last=3000, failing_saves=1), interval_s=0.01)
    assert case.run() is EndOfTraining.STEPS
    assert "no checkpoint was saved in nowhere" in caplog.text
    assert "OSError: the disk is full" in caplog.text
    assert len(case.parameter_server.saved_at) > 1  # one at the end, and one at an interval


def test_what_is_known_to_keep_a_checkpoint_from_being_saved_is_said_without_a_traceback(caplog):
    failure = CheckpointError("nothing is saved: shard 2/2 is away")
    Case(Counting(last=3000, failing_saves=1, failure=failure), interval_s=0.01).run()
    assert "is given): nothing is saved: shard 2/2 is away" in caplog.text
    assert "Traceback" not in caplog.text


def test_a_last_checkpoint_that_fails_is_tried_again(monkeypatch):
    monkeypatch.setattr(training_monitor, "LAST_SAVE_RETRY_DELAYS_S", (0.0, 0.0))
    case = Case(Counting(last=10, failing_saves=2))
    case.run()
    assert len(case.parameter_server.saved_at) == 1


def test_a_last_checkpoint_that_fails_for_good_is_an_error_and_the_port_is_closed_all_the_same(
    monkeypatch,
):
    monkeypatch.setattr(training_monitor, "LAST_SAVE_RETRY_DELAYS_S", (0.0, 0.0))
    case = Case(Counting(last=10, failing_saves=3))
    with pytest.raises(OSError, match="the disk is full"):
        case.run()
    assert case.bridge.events[-1] == "stopped"


def test_the_rate_of_steps_goes_to_the_metrics():
    rates = Recorded()
    Case(Counting(last=1000), metrics=rates).run()
    found = [rate for name, rate in rates.values if name == "server/steps per second"]
    assert found
    assert all(rate > 0 for rate in found)


def test_what_is_connected_goes_to_the_metrics_and_to_the_line(capsys):
    stored = Recorded()
    case = Case(Counting(last=1000), metrics=stored)
    case.figures.scalar("server/environments of a", 3)
    case.figures.scalar("server/connections of a", 1)
    case.run()
    assert {("server/environments", 3), ("server/connections", 1)} <= set(stored.values)
    assert " | 3 environments on 1 connection | " in capsys.readouterr().out


def test_the_return_is_plotted_beside_the_checkpoints_and_the_last_line_says_where(
    tmp_path, capsys
):
    curve = ReturnCurve(DirectoryStore(tmp_path), PlotLabels("run", 3))
    case = Case(Counting(last=1000), curve=curve)
    case.figures.scalar("episode/reward", 5.0)
    case.run()
    *_, last = capsys.readouterr().out.splitlines()
    assert last == f"plot of the return in {tmp_path}/return.png"
    assert (tmp_path / "return.csv").read_text().startswith("global_t,mean_return\n")
    assert {point.mean_return for point in curve.points} == {5.0}


class Recorded(Metrics):
    def __init__(self):
        self.values = []

    def scalar(self, name, y, x=None):
        self.values.append((name, y))


def test_progress_and_the_reason_of_the_end_are_printed(capsys):
    Case(Counting(last=100)).run()
    printed = capsys.readouterr().out
    assert "training: step " in printed
    assert " of 100 at " in printed
    assert "1 checkpoint" in printed
    assert "the required number of steps is done: global step " in printed
    assert "checkpoint in nowhere" in printed

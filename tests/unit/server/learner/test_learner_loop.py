"""The learner's process: it samples, learns, publishes and saves, until the training is over."""

import threading

import numpy as np
import pytest

from relaax.algorithm_base import LearnerBase, PublishedInfo, Step
from relaax.errors import LearningDiverged, ParameterServerAway
from relaax.replay.replay import NotReady
from relaax.replay.table import Sample
from relaax.server.learner.loop import LearnerLoop
from relaax.server.learner.publishing import PublishClock, PublishRule
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.metrics import NullMetrics


class Source:
    """Samples that are numbered; after ``most`` there are no more."""

    def __init__(self, most):
        self.most = most
        self.drawn = 0
        self.updates = []

    def sample(self, table, count, timeout_s):
        assert (table, count) == ("all", 4)
        if self.drawn == self.most:
            raise NotReady("no more")
        self.drawn += 1
        keys = np.arange(4) + 10 * self.drawn
        return Sample(keys, np.ones(4), {"number": np.full(4, self.drawn)}, 4, 1.0)

    def update_priorities(self, table, keys, priorities):
        self.updates.append((keys.tolist(), priorities.tolist()))
        return 0


class Learner(LearnerBase):
    table, batch_size = "all", 4

    def __init__(self):
        self.learnt = []

    def prepare(self, sample):
        return int(sample.columns["number"][0])

    def step(self, batch):
        self.learnt.append(batch)
        return Step(1, np.full(4, float(batch)), {"loss": 1.0})

    def parameters(self):
        return np.array([len(self.learnt)], np.float32)

    def state(self):
        return {"count": np.array([len(self.learnt)])}

    def restore(self, state):
        self.learnt = [0] * int(state["count"][0])


class Publisher:
    def __init__(self):
        self.published = []

    def publish_values(self, vector, iteration, message="", lineage=None):
        self.published.append((float(vector[0]), iteration))
        return PublishedInfo(0.0, iteration, message, "")


class Parts:
    def __init__(
        self,
        most,
        every_steps=2,
        first_iteration=0,
        interval_s=1000.0,
        threads=1,
        is_on_policy=False,
    ):
        self.source, self.publisher = Source(most), Publisher()
        self.learner = OnPolicy(self.source) if is_on_policy else Learner()
        self.saved = []
        self.saves_nan = False
        self.loop = LearnerLoop(
            self.learner,
            self.source,
            self.publisher,
            PublishClock(PublishRule(every_steps=every_steps)),
            IntervalMetrics(NullMetrics()),
            self._save,
            interval_s,
            first_iteration,
            threads=threads,
        )

    def _save(self, iteration):
        if self.saves_nan:
            raise LearningDiverged("there is NaN")
        self.saved.append(iteration)

    def run(self):
        stop = threading.Event()
        self.loop.run(stop, lambda: len(self.learner.learnt) == self.source.most)


def test_every_sample_is_prepared_and_learnt_from_in_order():
    parts = Parts(most=5)
    parts.run()
    assert parts.learner.learnt == [1, 2, 3, 4, 5]
    assert parts.loop.iteration == 5


def test_batches_are_drawn_by_several_threads_at_a_time_and_prepared_one_at_a_time():
    parts = Parts(most=8, threads=2)
    together, numbers = threading.Barrier(2), threading.Lock()
    preparing, another = threading.Lock(), threading.Event()
    draw, prepare = parts.source.sample, parts.learner.prepare

    def draw_with_another(*arguments):
        with numbers:
            sample = draw(*arguments)
        together.wait(30)  # breaks where one thread draws alone
        return sample

    def prepare_alone(sample):
        if not preparing.acquire(blocking=False):
            another.set()
            raise AssertionError("two are prepared at a time")
        try:
            another.wait(0.05)  # the other thread has drawn, too
            return prepare(sample)
        finally:
            preparing.release()

    parts.source.sample, parts.learner.prepare = draw_with_another, prepare_alone
    parts.run()
    assert sorted(parts.learner.learnt) == list(range(1, 9))


def test_parameters_are_published_at_the_start_as_agreed_and_at_the_end():
    parts = Parts(most=5)
    parts.run()
    assert parts.publisher.published == [(0, 0), (2, 2), (4, 4), (5, 5)]


def test_priorities_go_back_to_the_items_of_the_batch():
    parts = Parts(most=2)
    parts.run()
    assert parts.source.updates == [([10, 11, 12, 13], [1.0] * 4), ([20, 21, 22, 23], [2.0] * 4)]


def test_what_is_not_finite_is_neither_published_nor_saved():
    parts = Parts(most=5)
    parts.learner.parameters = lambda: np.float32([1.0]) / (2 - len(parts.learner.learnt))
    with (
        np.errstate(divide="ignore"),
        pytest.raises(
            LearningDiverged, match="after 2 steps of the learner its parameters are not finite"
        ),
    ):
        parts.run()
    assert parts.publisher.published == [(0.5, 0)]
    assert parts.saved == []


def test_what_an_algorithm_raises_is_raised_though_nothing_can_be_saved(caplog):
    parts, step = Parts(most=5), Learner.step

    def fail_then(batch):
        if parts.learner.learnt:
            raise ZeroDivisionError("oops")
        return step(parts.learner, batch)

    parts.learner.step, parts.saves_nan = fail_then, True
    with pytest.raises(ZeroDivisionError, match="oops"):
        parts.run()
    assert "no checkpoint was saved: there is NaN" in caplog.text


def test_a_checkpoint_that_is_refused_because_of_nan_ends_learning():
    parts = Parts(most=5, interval_s=0.0)
    parts.saves_nan = True
    with pytest.raises(LearningDiverged, match="there is NaN"):
        parts.run()
    assert parts.learner.learnt == [1]


def test_a_checkpoint_is_saved_at_the_end_and_after_each_interval():
    parts = Parts(most=3, interval_s=0.0)
    parts.run()
    assert parts.saved == [1, 2, 3]  # which is the last one, too


def test_a_learner_that_was_restored_counts_on():
    parts = Parts(most=2, first_iteration=40)
    parts.run()
    assert [iteration for _, iteration in parts.publisher.published] == [40, 42, 42]
    assert parts.saved == [42]


def test_a_signal_ends_it_while_nothing_comes():
    parts = Parts(most=0)
    stop = threading.Event()
    stop.set()
    parts.loop.run(stop, lambda: False)
    assert parts.saved == []  # nothing has been learnt
    assert parts.publisher.published


def test_while_the_parameter_server_is_away_learning_goes_on(caplog):
    parts = Parts(most=3)

    def away(vector, iteration, message, lineage):
        raise ParameterServerAway("nobody answers")

    parts.publisher.publish_values = away
    parts.run()
    assert parts.learner.learnt == [1, 2, 3]
    assert parts.saved == [3]
    assert "nobody answers" in caplog.text


def test_what_preparing_raises_is_raised():
    parts = Parts(most=3)

    def fail(sample):
        raise RuntimeError("no such column")

    parts.learner.prepare = fail
    with pytest.raises(RuntimeError, match="no such column"):
        parts.loop.run(threading.Event(), lambda: False)


def test_what_was_reached_is_saved_where_the_algorithm_fails():
    parts = Parts(most=3)

    def fail(batch):
        raise ArithmeticError("no number")

    parts.loop.iteration, parts.learner.step = 7, fail
    with pytest.raises(ArithmeticError, match="no number"):
        parts.loop.run(threading.Event(), lambda: False)
    assert parts.saved == [7]


class OnPolicy(Learner):
    """Notes how many batches were drawn when it learns; learns nothing from even ones."""

    is_on_policy = True

    def __init__(self, source):
        super().__init__()
        self.source = source
        self.drawn = []

    def step(self, batch):
        self.learnt.append(batch)
        self.drawn.append(self.source.drawn)
        return Step(batch % 2)


def on_policy(most):
    parts = Parts(most, is_on_policy=True)
    parts.run()
    return parts


def test_no_batch_is_drawn_ahead_of_a_learner_that_is_on_policy():
    assert on_policy(most=4).learner.drawn == [1, 2, 3, 4]


def test_it_publishes_after_each_step_and_a_batch_that_was_of_no_use_is_not_counted():
    parts = on_policy(most=4)
    iterations = [iteration for _, iteration in parts.publisher.published]
    assert iterations == [0, 1, 1, 2, 2, 2]
    assert parts.loop.iteration == 2

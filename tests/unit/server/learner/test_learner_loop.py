"""The learner's process: it samples, learns, publishes and saves, until the training is over."""

import threading
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from relaax.algorithm_base import DEFAULT, Input, Learner, Step, Values, Version
from relaax.errors import LearningDiverged, ParameterServerAway
from relaax.replay.replay import NotReady
from relaax.replay.table import Sample
from relaax.server.learner.loop import LearnerLoop
from relaax.server.learner.publishing import PublishClock
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.metrics import NullMetrics


class Source:
    """Samples of each table, which are numbered; after ``most`` there are no more."""

    def __init__(self, most):
        self.most = most
        self.drawn = Counter()
        self.updates = []

    def sample(self, table, count, timeout_s):
        if self.drawn[table] == self.most:
            raise NotReady("no more")
        self.drawn[table] += 1
        number = self.drawn[table]
        keys = np.arange(count) + 10 * number
        return Sample(keys, np.ones(count), {"number": np.full(count, number)}, count, 1.0)

    def update_priorities(self, table, keys, priorities):
        self.updates.append((table, keys.tolist(), priorities.tolist()))
        return 0


def number_of(sample):
    return int(sample.columns["number"][0])


class Counting(Learner):
    def __init__(self):
        self.inputs = {"all": Input(4, number_of)}
        self.learnt = []

    def steps(self, batches):
        self.learnt.append(batches["all"])
        yield Step(1, {"all": np.full(4, float(batches["all"]))}, {"loss": 1.0})

    def values(self):
        return {DEFAULT: np.array([len(self.learnt)], np.float32)}

    def state(self):
        return {"count": np.array([len(self.learnt)])}

    def restore(self, state):
        self.learnt = [0] * int(state["count"][0])


class Publisher:
    def __init__(self):
        self.published = []

    def push(self, update, policy="default"):
        self.published.append((float(update.vector[0]), update.iteration))
        return Values(Version(len(self.published)), 0, None)


class Parts:
    def __init__(
        self,
        most,
        every_steps=2,
        first_iteration=0,
        interval_s=1000.0,
        threads=1,
        make_learner=lambda source: Counting(),
        waits=None,
    ):
        self.source, self.publisher = Source(most), Publisher()
        self.learner = make_learner(self.source)
        self.saved = []
        self.saves_nan = False
        self.loop = LearnerLoop(
            self.learner,
            self.source,
            self.publisher,
            PublishClock(0.0, every_steps),
            IntervalMetrics(NullMetrics()),
            self._save,
            interval_s,
            first_iteration,
            threads=threads,
            waits=waits,
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
    draw = parts.source.sample

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
            return number_of(sample)
        finally:
            preparing.release()

    parts.source.sample = draw_with_another
    parts.learner.inputs = {"all": Input(4, prepare_alone)}
    parts.run()
    assert sorted(parts.learner.learnt) == list(range(1, 9))


def test_parameters_are_published_at_the_start_as_agreed_and_at_the_end():
    parts = Parts(most=5)
    parts.run()
    assert parts.publisher.published == [(0, 0), (2, 2), (4, 4), (5, 5)]


def test_priorities_go_back_to_the_items_of_the_batch():
    parts = Parts(most=2)
    parts.run()
    assert parts.source.updates == [
        ("all", [10, 11, 12, 13], [1.0] * 4), ("all", [20, 21, 22, 23], [2.0] * 4)
    ]  # fmt: skip


def test_what_is_not_finite_is_neither_published_nor_saved():
    parts = Parts(most=5)
    learnt = parts.learner.learnt
    parts.learner.values = lambda: {DEFAULT: np.float32([1.0]) / (2 - len(learnt))}
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
    parts, steps = Parts(most=5), Counting.steps

    def fail_then(batch):
        if parts.learner.learnt:
            raise ZeroDivisionError("oops")
        return steps(parts.learner, batch)

    parts.learner.steps, parts.saves_nan = fail_then, True
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

    def away(update, policy):
        raise ParameterServerAway("nobody answers")

    parts.publisher.push = away
    parts.run()
    assert parts.learner.learnt == [1, 2, 3]
    assert parts.saved == [3]
    assert "nobody answers" in caplog.text


def test_what_preparing_raises_is_raised():
    parts = Parts(most=3)

    def fail(sample):
        raise RuntimeError("no such column")

    parts.learner.inputs = {"all": Input(4, fail)}
    with pytest.raises(RuntimeError, match="no such column"):
        parts.loop.run(threading.Event(), lambda: False)


def test_what_was_reached_is_saved_where_the_algorithm_fails():
    parts = Parts(most=3)

    def fail(batch):
        raise ArithmeticError("no number")

    parts.loop.iteration, parts.learner.steps = 7, fail
    with pytest.raises(ArithmeticError, match="no number"):
        parts.loop.run(threading.Event(), lambda: False)
    assert parts.saved == [7]


class OnPolicy(Counting):
    """Notes how many batches were drawn when it learns; learns nothing from even ones."""

    def __init__(self, source):
        super().__init__()
        self.inputs = {"all": Input(4, number_of, is_on_policy=True)}
        self.source = source
        self.drawn = []

    def steps(self, batches):
        self.learnt.append(batches["all"])
        self.drawn.append(self.source.drawn["all"])
        yield Step(batches["all"] % 2)


def on_policy(most):
    parts = Parts(most, make_learner=OnPolicy)
    parts.run()
    return parts


def test_no_batch_is_drawn_ahead_of_a_learner_that_is_on_policy():
    assert on_policy(most=4).learner.drawn == [1, 2, 3, 4]


def test_it_publishes_after_each_step_and_a_batch_that_was_of_no_use_is_not_counted():
    parts = on_policy(most=4)
    iterations = [iteration for _, iteration in parts.publisher.published]
    assert iterations == [0, 1, 1, 2, 2, 2]
    assert parts.loop.iteration == 2


class OfTwoTables(OnPolicy):
    """Learns from fresh rollouts and from replayed ones in each step."""

    def __init__(self, source):
        super().__init__(source)
        self.inputs = {**self.inputs, "replayed": Input(2, number_of)}
        self.replayed = []

    def steps(self, batches):
        self.replayed.append(batches["replayed"])
        for step in super().steps(batches):
            yield replace(step, priorities={"replayed": np.ones(2)})


def test_a_step_has_a_batch_of_each_table_the_fresh_one_drawn_after_the_step_before():
    parts = Parts(most=4, make_learner=OfTwoTables)
    parts.run()
    assert parts.learner.learnt == parts.learner.replayed == parts.learner.drawn == [1, 2, 3, 4]
    assert parts.source.updates[0] == ("replayed", [10, 11], [1.0, 1.0])


class Waits:
    def __init__(self):
        self.reasons = []
        self.has_waited = threading.Event()

    def note(self, reason):
        self.reasons.append(reason)
        if reason:
            self.has_waited.set()


def test_a_batch_of_one_table_is_kept_until_there_is_one_of_the_other_which_is_named():
    waits = Waits()
    parts = Parts(most=1, make_learner=OfTwoTables, waits=waits)
    draw = parts.source.sample

    def draw_late(table, *arguments):
        if table == "replayed" and not waits.has_waited.is_set():
            raise NotReady("too few")
        return draw(table, *arguments)

    parts.source.sample = draw_late
    parts.run()
    assert waits.reasons[0] == "replayed: too few"
    assert (parts.learner.learnt, parts.source.drawn["all"]) == ([1], 1)

"""The learner: from rollouts to updates and new policies, with a gradient easy to follow."""

import threading
from functools import partial
from itertools import count

import numpy as np
import pytest
from learning_parts import SMALL_COLUMNS, Recorder, small_policy, small_values, wait_until

from relaax.algorithm_base import NullMetrics, Values, Version
from relaax.interval_metrics import IntervalMetrics
from relaax.learning import background_learner
from relaax.learning.background_learner import BackgroundLearner
from relaax.learning.learner import Learner, NoLearner
from relaax.learning.model import Gradient
from relaax.learning.optimizers import RMSProp, RMSPropSettings
from relaax.learning.parameter_service import ParameterService
from relaax.learning.parameter_store import ParameterStore
from relaax.learning.rollouts import RolloutBatch


class MeanReward:
    """A gradient model: all parameters fall with the mean of the rewards."""

    def __init__(self):
        self.rollouts = []
        self.prepared = []

    def gradient(self, parameters, rollouts):
        self.rollouts.append(rollouts)
        size = sum(array.size for array in parameters.arrays.values())
        vector = np.full(size, rollouts.rewards.mean(), np.float32)
        return Gradient(vector, {"reward": float(rollouts.rewards.sum())})

    def prepare(self, parameters, most):
        self.prepared.append(most)


def parameter_service():
    """A parameter server whose parameters are those of ``small_policy``."""
    vector = small_values().vector
    optimizer = RMSProp(vector.size, RMSPropSettings())
    store = ParameterStore(vector, optimizer, learning_rate=lambda global_t: 0.01)
    return ParameterService(store, NullMetrics())


class Restarted:
    """A parameter server of another incarnation."""

    def __init__(self, service):
        self._service = service

    def synchronize(self, gradients, steps, computed_with=None):
        values = self._service.synchronize(gradients, steps)
        return Values(Version(values.version.number, 77), values.global_t, values.vector)


class Learning:
    """A learner, its parameter server, and what it has learnt from."""

    def __init__(self, **values):
        self.bridge = Recorder(parameter_service())
        self.model, self.policy = MeanReward(), small_policy()
        self.learner = Learner(
            model=self.model,
            policy=self.policy,
            gradients=self.bridge,
            counter=self.bridge,
            metrics=IntervalMetrics(self.bridge.stored, interval_s=0.0),
            **values,
        )

    @property
    def rollouts(self):
        return self.model.rollouts

    def vector(self):
        return self.bridge.get_values().vector

    def global_t(self):
        return self.bridge.increment_global_t(0)


def rollouts_of(count=1, reward=1.0, versions=0):
    """Rollouts of three steps each."""
    rollouts = RolloutBatch.zeros(count, 3, SMALL_COLUMNS)
    rollouts.rewards[:] = reward
    rollouts.valid[:] = 1
    rollouts.versions[:] = versions
    return rollouts


def in_use(policy):
    return np.concatenate([array.ravel() for array in policy.current.parameters.arrays.values()])


def test_rollouts_make_an_update_and_the_new_values_are_published():
    learning = Learning()
    before = learning.vector()
    learning.learner.put(rollouts_of(count=2))
    assert [(steps, version) for _, steps, version in learning.bridge.gradients] == [(6, 0)]
    assert not np.array_equal(learning.vector(), before)
    np.testing.assert_array_equal(in_use(learning.policy), learning.vector())
    assert learning.policy.current.version.number == 1


def test_each_pass_is_an_update_and_the_steps_count_once():
    learning = Learning(passes=3)
    learning.learner.put(rollouts_of())
    calls = [(steps, version) for _, steps, version in learning.bridge.gradients]
    assert calls == [(3, 0), (0, 1), (0, 2)]
    assert learning.global_t() == 3
    first, second, third = learning.rollouts
    assert first is second is third


def test_each_pass_divides_the_rollouts_at_random_and_learns_from_each_once():
    random = np.random.default_rng(0)
    learning = Learning(passes=2, minibatches=3, random=random)
    learning.learner.put(rollouts_of(count=9, versions=range(9)))
    taken = [part.versions.tolist() for part in learning.rollouts]
    assert [len(part) for part in taken] == [3] * 6
    first, second = np.concatenate(taken[:3]), np.concatenate(taken[3:])
    assert sorted(first) == sorted(second) == list(range(9))
    assert first.tolist() != second.tolist() != list(range(9))


def test_steps_count_once_with_minibatches_too():
    learning = Learning(passes=2, minibatches=2)
    learning.learner.put(rollouts_of(count=4))
    assert [steps for _, steps, _ in learning.bridge.gradients] == [12, 0, 0, 0]


def test_fewer_rollouts_than_minibatches_are_learnt_from_one_by_one():
    learning = Learning(minibatches=8)
    learning.learner.put(rollouts_of(count=3))
    assert [part.count for part in learning.rollouts] == [1, 1, 1]


def test_no_update_has_more_rollouts_than_one_may_have():
    learning = Learning(minibatches=2, most_at_once=3)
    learning.learner.put(rollouts_of(count=7, versions=range(7)))
    taken = [part.versions.tolist() for part in learning.rollouts]
    assert [len(part) for part in taken] == [3, 3, 1]
    assert sorted(np.concatenate(taken)) == list(range(7))


def test_what_fits_one_update_is_not_divided():
    learning = Learning(most_at_once=3)
    rollouts = rollouts_of(count=3)
    learning.learner.put(rollouts)
    assert learning.rollouts == [rollouts]


def test_expected_updates_are_prepared_before_the_first_client():
    learning = Learning(minibatches=4, most_at_once=2, expected=30)
    learning.learner.warm_up()
    assert learning.model.prepared == [2]


def test_a_learner_that_expects_nothing_holds_no_worker_up():
    learning = Learning()
    learning.learner.warm_up()
    assert learning.model.prepared == []


def test_updates_of_the_size_of_a_minibatch_are_prepared():
    learning = Learning(minibatches=4)
    learning.learner.prepare(30)
    assert learning.model.prepared == [8]


def test_gradients_longer_than_the_limit_are_cut_to_it():
    learning = Learning(gradient_norm_clipping=0.5)
    learning.learner.put(rollouts_of(reward=100.0))
    gradient, _, _ = learning.bridge.gradients[0]
    assert np.linalg.norm(gradient) == pytest.approx(0.5, rel=1e-5)


def test_a_gradient_that_is_not_finite_is_dropped_with_its_steps_counted(caplog):
    learning = Learning(passes=2)
    before = learning.vector()
    rollouts = rollouts_of()
    rollouts.rewards[1] = np.inf
    learning.learner.put(rollouts)
    assert "their gradient is not finite; their rewards lie between 1 and inf" in caplog.text
    np.testing.assert_array_equal(learning.vector(), before)
    assert learning.global_t() == 3


def test_what_is_learnt_is_stored_per_step():
    learning = Learning()
    learning.learner.put(rollouts_of(count=2, reward=1.5))
    assert ("learner/reward", 1.5) in learning.bridge.stored.values
    assert ("learner/rollouts per update", 2) in learning.bridge.stored.values


def test_the_lag_of_the_policy_is_counted_in_updates():
    learning = Learning()
    for _ in range(4):
        learning.bridge.apply_gradients(np.zeros_like(learning.vector()))
    learning.learner.put(rollouts_of())
    assert ("learner/policy lag", 4.0) in learning.bridge.stored.values
    assert ("learner/policy lag max", 4.0) in learning.bridge.stored.values


def test_values_that_are_current_already_change_no_policy():
    policy = small_policy()
    before = policy.current
    policy.publish(Values(Version(0), 7, None))
    assert policy.current is before


def test_a_policy_begins_with_values():
    with pytest.raises(RuntimeError, match="came without their vector"):
        type(small_policy())(lambda vector: None, Values(Version(0), 0, None))


def test_where_nothing_learns_rollouts_are_dropped():
    nothing = NoLearner()
    nothing.warm_up()
    nothing.put(rollouts_of())
    nothing.close()


@pytest.fixture(name="background")
def _background():
    learning = Learning()
    learning.learner = BackgroundLearner(
        learning.learner, learning.policy, learning.bridge.stored, 2, drops=True
    )
    yield learning
    learning.bridge.goes_on.set()
    learning.learner.close()


def put(learning, times):
    for _ in range(times):
        learning.learner.put(rollouts_of())


def test_where_rollouts_are_dropped_nothing_waits_for_learning(background):
    background.bridge.goes_on.clear()
    put(background, 100)
    assert background.bridge.gradients == []
    background.bridge.goes_on.set()
    wait_until(lambda: len(background.bridge.gradients) >= 2)


def test_rollouts_that_there_is_no_time_for_are_dropped_and_counted(background):
    """Of 100 rollouts each is learnt from or counted as dropped; the global step counts all."""

    def dropped():
        return background.bridge.stored.sum_of("learner/rollouts dropped")

    background.bridge.goes_on.clear()
    put(background, 100)
    background.bridge.goes_on.set()
    wait_until(lambda: dropped() + sum(each.count for each in background.rollouts) == 100)
    assert dropped() > 50
    wait_until(lambda: background.global_t() == 300)


def test_steps_dropped_while_the_parameter_server_was_away_are_not_counted(background):
    """The one that is there again goes on from its last checkpoint, here step 0."""
    background.bridge.goes_on.clear()
    put(background, 1)
    wait_until(lambda: background.rollouts)  # the learner has begun; what follows is dropped
    put(background, 100)
    again = parameter_service()
    background.bridge.service = Restarted(again)
    background.bridge.goes_on.set()
    wait_until(lambda: len(background.bridge.gradients) >= 3)
    background.learner.close()
    learnt = sum(each.steps for each in background.rollouts)
    assert again.increment_global_t(0) <= learnt < 150


def test_waiting_rollouts_are_learnt_from_together_up_to_the_limit(background):
    background.bridge.goes_on.clear()
    put(background, 10)
    background.bridge.goes_on.set()
    wait_until(lambda: len(background.rollouts) >= 4)
    assert max(rollouts.count for rollouts in background.rollouts) == 2


def test_rollouts_that_come_at_once_are_learnt_from_up_to_the_limit(background):
    background.learner.put(rollouts_of(count=5, versions=[0, 1, 2, 3, 4]))
    wait_until(lambda: sum(each.count for each in background.rollouts) == 5)
    assert sorted(each.versions.tolist() for each in background.rollouts) == [[0, 1], [2, 3], [4]]


def test_where_rollouts_are_dropped_the_newest_are_learnt_from_first(background):
    """Where learning does not keep up, they are of the policy that is nearest to the one in use."""
    background.bridge.goes_on.clear()
    background.learner.put(rollouts_of(versions=[0]))
    wait_until(lambda: background.rollouts)  # the learner has begun
    for version in range(1, 7):
        background.learner.put(rollouts_of(versions=[version]))
    background.bridge.goes_on.set()
    wait_until(lambda: len(background.rollouts) == 4)
    learnt = [each.versions.tolist() for each in background.rollouts]
    assert learnt == [[0], [6, 5], [4, 3], [2, 1]]


def test_in_the_background_updates_are_prepared_and_in_the_foreground_not(background):
    background.learner.warm_up()
    assert background.model.prepared == [2]
    foreground = Learning()
    foreground.learner.warm_up()
    assert foreground.model.prepared == []


def waiting_learner(learning):
    """Return one that acting waits for."""
    return BackgroundLearner(learning.learner, learning.policy, learning.bridge.stored, 2)


def noted(function, results, *arguments):
    results.append(function(*arguments))
    return results[-1]


def test_acting_waits_for_a_learner_that_does_not_keep_up_and_nothing_is_dropped():
    learning = Learning()
    learner = waiting_learner(learning)
    learning.bridge.goes_on.clear()
    putting = threading.Thread(target=lambda: [learner.put(rollouts_of()) for _ in range(20)])
    putting.start()
    wait_until(lambda: learning.rollouts and learner._waiting >= 2)
    assert putting.is_alive()
    assert len(learning.rollouts) == 1
    learning.bridge.goes_on.set()
    putting.join(30)
    wait_until(lambda: sum(each.count for each in learning.rollouts) == 20)
    assert learning.bridge.stored.sum_of("learner/rollouts dropped") == 0
    learner.close()


def test_a_learner_that_takes_nothing_is_waited_for_once_until_it_goes_on(monkeypatch):
    monkeypatch.setattr(background_learner, "FULL_QUEUE_DEADLINE_S", 0.1)
    learning = Learning()
    learner = waiting_learner(learning)
    waits = []
    learner._changed.wait = partial(noted, learner._changed.wait, waits)
    learning.bridge.goes_on.clear()
    for _ in range(50):
        learner.put(rollouts_of())
    assert waits.count(False) == 1
    learning.bridge.goes_on.set()
    wait_until(lambda: learner._waiting == 0 and not learner._hangs)
    dropped = learning.bridge.stored.sum_of("learner/rollouts dropped")
    assert dropped >= 35
    wait_until(lambda: dropped + sum(each.count for each in learning.rollouts) == 50)
    learner.close()


def test_one_put_waits_for_no_longer_than_the_deadline_however_many_updates_it_makes(monkeypatch):
    """A clock that shows two seconds more at each look, and a learner that is always slow."""
    monkeypatch.setattr(background_learner, "FULL_QUEUE_DEADLINE_S", 5.0)
    monkeypatch.setattr(background_learner, "monotonic", partial(next, count(0, 2)))
    learning = Learning()
    learner = waiting_learner(learning)
    learning.bridge.goes_on.clear()
    learner.put(rollouts_of())
    wait_until(lambda: learning.rollouts)  # the learner has begun, and takes no more
    waits = []
    with monkeypatch.context() as slow:
        slow.setattr(learner._changed, "wait", lambda left: waits.append(left) or True)
        learner.put(rollouts_of(count=8))
    assert waits == [3, 1]
    learning.bridge.goes_on.set()
    wait_until(lambda: sum(each.count for each in learning.rollouts) == 9)
    learner.close()


def test_where_acting_waits_rollouts_are_learnt_from_in_the_order_of_arrival(monkeypatch):
    """Pieces of two and of one, for updates of three: none is passed over by newer ones."""
    monkeypatch.setattr(background_learner, "FULL_QUEUE_DEADLINE_S", 0.05)
    learning = Learning()
    bridge, policy = learning.bridge, learning.policy
    learner = BackgroundLearner(learning.learner, policy, bridge.stored, 3)
    bridge.goes_on.clear()
    learner.put(rollouts_of())
    wait_until(lambda: learning.rollouts)  # the learner has begun
    for version, size in enumerate([2, 2, 1, 2, 2], start=1):
        learner.put(rollouts_of(size, versions=version))
    bridge.goes_on.set()
    wait_until(lambda: sum(each.count for each in learning.rollouts) == 10)
    learnt = [each.versions.tolist() for each in learning.rollouts]
    assert learnt == [[0], [1, 1], [2, 2, 3], [4, 4], [5, 5]]
    learner.close()


def test_an_error_of_the_learner_ends_waiting():
    learning = Learning()
    learner = waiting_learner(learning)
    learning.bridge.goes_on.clear()
    learning.bridge.error = RuntimeError("the parameter server refused")
    threading.Timer(0.2, learning.bridge.goes_on.set).start()
    with pytest.raises(RuntimeError, match="refused"):
        learner.put(rollouts_of(count=20, versions=[0] * 20))
    learner.close()


def test_a_learner_that_closes_begins_no_other_pass():
    learning = Learning(passes=50)
    learner = BackgroundLearner(learning.learner, learning.policy, learning.bridge.stored, 2)
    learning.bridge.goes_on.clear()
    learner.put(rollouts_of())
    wait_until(lambda: learning.rollouts)
    closing = threading.Thread(target=learner.close)
    closing.start()
    wait_until(lambda: learning.learner._stops)
    learning.bridge.goes_on.set()
    closing.join(30)
    assert not learner._thread.is_alive()
    assert len(learning.bridge.gradients) == 1


def test_an_error_of_the_learner_is_raised_where_it_is_noticed_and_logged_by_its_caller_alone(
    background, caplog
):
    background.bridge.error = RuntimeError("the parameter server refused")
    put(background, 1)
    wait_until(lambda: not background.learner._thread.is_alive())
    with pytest.raises(RuntimeError, match="refused"):
        put(background, 1)
    background.learner.close()
    assert "Traceback" not in caplog.text


def test_an_error_of_the_learner_that_is_never_raised_is_logged_at_the_end(background, caplog):
    background.bridge.error = RuntimeError("the parameter server refused")
    put(background, 1)
    wait_until(lambda: not background.learner._thread.is_alive())
    background.learner.close()
    assert caplog.text.count("Traceback") == 1
    assert "the parameter server refused" in caplog.text

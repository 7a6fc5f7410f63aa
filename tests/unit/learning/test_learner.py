"""The learner: from rollouts to updates and new policies, with a gradient easy to follow."""

import numpy as np
import pytest
from learner_parts import Learning, Restarted, in_use, parameter_service, rollouts_of
from learning_parts import small_policy

from relaax.algorithm_base import Values, Version
from relaax.parameters import driver


def test_rollouts_make_an_update_and_the_new_values_are_published():
    learning = Learning()
    before = learning.vector()
    learning.sink.put(rollouts_of(count=2))
    assert [(steps, version) for _, steps, version in learning.bridge.gradients] == [(6, 0)]
    assert not np.array_equal(learning.vector(), before)
    np.testing.assert_array_equal(in_use(learning.policy), learning.vector())
    assert learning.policy.current.version.number == 1


def test_each_pass_is_an_update_and_the_steps_count_once():
    learning = Learning(passes=3)
    learning.sink.put(rollouts_of())
    calls = [(steps, version) for _, steps, version in learning.bridge.gradients]
    assert calls == [(3, 0), (0, 1), (0, 2)]
    assert learning.global_t() == 3
    first, second, third = learning.rollouts
    assert first is second is third


def test_each_pass_divides_the_rollouts_at_random_and_learns_from_each_once():
    random = np.random.default_rng(0)
    learning = Learning(passes=2, minibatches=3, random=random)
    learning.sink.put(rollouts_of(count=9, versions=range(9)))
    taken = [part.versions.tolist() for part in learning.rollouts]
    assert [len(part) for part in taken] == [3] * 6
    first, second = np.concatenate(taken[:3]), np.concatenate(taken[3:])
    assert sorted(first) == sorted(second) == list(range(9))
    assert first.tolist() != second.tolist() != list(range(9))


def test_steps_count_once_with_minibatches_too():
    learning = Learning(passes=2, minibatches=2)
    learning.sink.put(rollouts_of(count=4))
    assert [steps for _, steps, _ in learning.bridge.gradients] == [12, 0, 0, 0]


def test_fewer_rollouts_than_minibatches_are_learnt_from_one_by_one():
    learning = Learning(minibatches=8)
    learning.sink.put(rollouts_of(count=3))
    assert [part.count for part in learning.rollouts] == [1, 1, 1]


def test_no_update_has_more_rollouts_than_one_may_have():
    learning = Learning(minibatches=2, most_at_once=3)
    learning.sink.put(rollouts_of(count=7, versions=range(7)))
    taken = [part.versions.tolist() for part in learning.rollouts]
    assert [len(part) for part in taken] == [3, 3, 1]
    assert sorted(np.concatenate(taken)) == list(range(7))


def test_what_fits_one_update_is_not_divided():
    learning = Learning(most_at_once=3)
    rollouts = rollouts_of(count=3)
    learning.sink.put(rollouts)
    assert learning.rollouts == [rollouts]


def test_expected_updates_are_prepared_before_the_first_client():
    learning = Learning(minibatches=4, most_at_once=2, expected=30)
    learning.sink.warm_up()
    assert learning.model.prepared == [2]


def test_a_learner_that_expects_nothing_holds_no_worker_up():
    learning = Learning()
    learning.sink.warm_up()
    assert learning.model.prepared == []


def test_updates_of_the_size_of_a_minibatch_are_prepared():
    learning = Learning(minibatches=4)
    learning.learner.prepare_updates(30)
    assert learning.model.prepared == [8]


def test_gradients_longer_than_the_limit_are_cut_to_it():
    learning = Learning(gradient_norm_clipping=0.5)
    learning.sink.put(rollouts_of(reward=100.0))
    gradient, _, _ = learning.bridge.gradients[0]
    assert np.linalg.norm(gradient) == pytest.approx(0.5, rel=1e-5)


def test_a_gradient_that_is_not_finite_is_dropped_with_its_steps_counted(caplog):
    learning = Learning(passes=2)
    before = learning.vector()
    rollouts = rollouts_of()
    rollouts.rewards[1] = np.inf
    learning.sink.put(rollouts)
    assert "their gradient is not finite; their rewards lie between 1 and inf" in caplog.text
    np.testing.assert_array_equal(learning.vector(), before)
    assert learning.global_t() == 3


def test_a_minibatch_without_a_finite_gradient_spoils_no_other():
    learning = Learning(passes=2, minibatches=4)
    rollouts = rollouts_of(count=4, versions=range(4))
    rollouts.rewards[1, 2] = np.inf
    learning.sink.put(rollouts)
    assert len(learning.rollouts) == 8
    assert len(learning.bridge.gradients) == 6
    assert learning.global_t() == 12


def test_a_training_that_is_over_ends_the_update():
    learning = Learning(passes=5, minibatches=2)
    learning.store.freeze()
    learning.sink.put(rollouts_of(count=2))
    assert len(learning.bridge.gradients) == 1


def test_when_the_training_is_over_no_gradients_are_computed():
    learning = Learning()
    learning.store.freeze()
    for _ in range(10):
        learning.sink.put(rollouts_of())
    assert len(learning.rollouts) == 1  # whose update has changed nothing


def test_a_parameter_server_that_is_back_gets_gradients_again(monkeypatch):
    monkeypatch.setattr(driver, "PAUSE_AT_THE_END_S", 0.0)
    learning = Learning()
    learning.store.freeze()
    learning.sink.put(rollouts_of())
    learning.bridge.service = Restarted(parameter_service())  # from its checkpoint
    learning.sink.put(rollouts_of())
    assert learning.policy.current.version.number == 1


def test_what_is_learnt_is_stored_per_step():
    learning = Learning()
    learning.sink.put(rollouts_of(count=2, reward=1.5))
    assert ("learner/reward", 1.5) in learning.bridge.stored.values
    assert ("learner/rollouts per update", 2) in learning.bridge.stored.values


def test_the_lag_of_the_policy_is_counted_in_updates():
    learning = Learning()
    for _ in range(4):
        learning.bridge.apply_gradients(np.zeros_like(learning.vector()))
    learning.sink.put(rollouts_of())
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

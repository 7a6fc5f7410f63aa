"""Rollouts as arrays, of actions of any shape and type."""

import numpy as np
from learning_parts import SMALL_COLUMNS

from relaax.learning.rollouts import Columns, RolloutBatch, RolloutStore

CONTINUOUS = Columns(
    observation_shape=(2,),
    observation_dtype=np.float32,
    action_shape=(3,),
    action_dtype=np.float32,
    recurrent_size=4,
)
LENGTH = 2


def filled(store, slots, steps, number=0):
    """Take ``steps`` steps in each of ``slots``; return the rollouts that became full."""
    found = []
    for step in range(number, number + steps):
        observations = np.full((len(slots), 2), step, np.float32)
        found.append(store.observe(slots, observations, starts=step == 0))
        actions = np.full((len(slots), 3), step + 0.5, np.float32)
        probabilities = np.full(len(slots), -step, np.float32)
        state = np.full((2, len(slots), 4), step, np.float32)
        store.record(slots, actions, {"log_probability": probabilities}, state, version=10 + step)
        store.reward(slots, np.full(len(slots), 100.0 + step), terminated=False)
    return [rollouts for rollouts in found if rollouts is not None]


def test_actions_may_be_arrays():
    store = RolloutStore(LENGTH, CONTINUOUS)
    store.grow(1)
    (rollout,) = filled(store, np.array([0]), 3)
    assert rollout.actions.dtype == np.float32
    assert rollout.actions[:, 0].tolist() == [[0.5] * 3, [1.5] * 3]
    assert rollout.rewards[:, 0].tolist() == [100, 101]
    assert rollout.extras["log_probability"][:, 0].tolist() == [0, -1]


def test_a_rollout_remembers_the_version_and_state_before_its_first_action():
    store = RolloutStore(LENGTH, CONTINUOUS)
    store.grow(1)
    first, second = filled(store, np.array([0]), 5)
    assert (first.versions.tolist(), second.versions.tolist()) == ([10], [12])
    assert first.recurrent_state.max() == 0
    assert second.recurrent_state.min() == 2


def test_more_room_keeps_unfinished_rollouts():
    store = RolloutStore(LENGTH, CONTINUOUS)
    store.grow(1)
    filled(store, np.array([0]), 2)
    store.grow(5)
    (rollout,) = filled(store, np.array([0]), 1, number=2)
    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 2]


def test_a_rollout_that_is_handed_out_does_not_change_any_more():
    store = RolloutStore(LENGTH, CONTINUOUS)
    store.grow(1)
    (rollout,) = filled(store, np.array([0]), 3)
    filled(store, np.array([0]), 2, number=7)
    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 2]


def test_a_forgotten_slot_begins_again():
    store = RolloutStore(LENGTH, CONTINUOUS)
    store.grow(2)
    filled(store, np.array([0, 1]), 2)
    store.forget(np.array([0]))
    (rollouts,) = filled(store, np.array([0, 1]), 1, number=2)
    assert rollouts.count == 1


def test_batches_are_cut_in_pieces_and_put_together_again():
    whole = RolloutBatch.zeros(5, LENGTH, CONTINUOUS)
    whole.versions[:] = range(5)
    whole.actions[:] = np.arange(5)[:, np.newaxis]
    pieces = whole.pieces(2)
    assert [piece.count for piece in pieces] == [2, 2, 1]
    again = RolloutBatch.concatenated(pieces)
    assert again.versions.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(again.actions, whole.actions)


def test_rollouts_are_chosen_in_the_order_that_is_asked_for():
    whole = RolloutBatch.zeros(4, LENGTH, CONTINUOUS)
    whole.versions[:] = range(4)
    whole.actions[:] = np.arange(4)[:, np.newaxis]
    chosen = whole.chosen(np.array([3, 1]))
    assert chosen.versions.tolist() == [3, 1]
    np.testing.assert_array_equal(chosen.actions, whole.actions[:, [3, 1]])


def test_rollouts_of_zeros_hold_no_step():
    rollouts = RolloutBatch.zeros(3, LENGTH, SMALL_COLUMNS)
    assert (rollouts.count, rollouts.steps) == (3, 0)
    assert rollouts.observations.shape == (LENGTH + 1, 3, 2)

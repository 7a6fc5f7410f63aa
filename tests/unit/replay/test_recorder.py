"""Single steps of many environments, as they are handed over to what stores them."""

import numpy as np
import pytest

from relaax.errors import InvalidState
from relaax.learning.rollouts import Columns
from relaax.learning.steps.recorder import StepRecorder
from relaax.replay.storage import ABANDONED, FINAL, START, TERMINATED

COLUMNS = Columns((2,), np.float32, (), np.int64)
EVERY = np.arange(3)


def recorder(capacity=3):
    made = StepRecorder(COLUMNS)
    made.grow(capacity)
    return made


def states(*numbers):
    return np.array([[number, -number] for number in numbers], np.float32)


def begin(made, slots, numbers, starts, version=0):
    """Observe, and choose the numbers themselves as actions; return what was completed."""
    slots = np.asarray(slots)
    complete = made.observe(slots, states(*numbers), np.asarray(starts))
    likelihoods = np.full(len(slots), -0.5, np.float32)
    made.record(
        slots,
        np.asarray(numbers),
        {"log_probability": likelihoods},
        np.zeros((2, len(slots), 0)),
        version,
    )
    return complete


def test_a_step_is_handed_over_when_its_reward_and_the_next_state_are_known():
    made = recorder()
    assert begin(made, [0, 2], [1, 5], [True, True], version=7) is None
    made.reward(np.array([0, 2]), np.array([0.5, 1.5]), False)
    steps = begin(made, [0, 2], [2, 6], [False, False])
    assert steps.slots.tolist() == [0, 2]
    assert steps.columns["observation"].tolist() == [[1, -1], [5, -5]]
    assert steps.columns["action"].tolist() == [1, 5]
    assert steps.columns["reward"].tolist() == [0.5, 1.5]
    assert steps.flags.tolist() == [START, START]
    assert steps.columns["version"].tolist() == [7, 7]
    assert steps.actions == 2


def test_an_episode_that_has_ended_is_followed_by_a_start():
    made = recorder()
    begin(made, [0], [1], [True])
    made.reward(np.array([0]), np.array([9.0]), True)
    (flags,) = begin(made, [0], [2], [True]).flags.tolist()
    assert flags == START | TERMINATED
    made.reward(np.array([0]), np.array([1.0]), False)
    assert begin(made, [0], [3], [False]).flags.tolist() == [START]


def test_a_cut_brings_the_state_in_which_it_happened_without_an_action():
    made = recorder()
    begin(made, [0, 1], [1, 2], [True, True])
    made.reward(EVERY[:2], np.array([0.5, 0.25]), False)
    steps = made.cut_off(np.array([1]), states(8))
    assert steps.slots.tolist() == [1, 1]
    assert steps.flags.tolist() == [START, FINAL]
    assert steps.columns["observation"].tolist() == [[2, -2], [8, -8]]
    assert (steps.columns["action"][1], steps.columns["reward"][1], steps.actions) == (0, 0, 1)
    assert begin(made, [0, 1], [3, 4], [False, True]).slots.tolist() == [0]


def test_an_episode_that_is_begun_anew_takes_its_last_action_back():
    made = recorder()
    begin(made, [0], [1], [True])
    made.cut_last(np.array([0]))
    steps = begin(made, [0], [2], [True])
    assert steps.flags.tolist() == [START | FINAL | ABANDONED]
    assert steps.actions == 0


def test_an_environment_that_goes_leaves_the_end_of_its_episode():
    made = recorder()
    begin(made, [0, 1], [1, 2], [True, True])
    made.reward(np.array([0]), np.array([4.0]), True)
    steps = made.forget(EVERY)
    assert steps.slots.tolist() == [0, 1]
    assert steps.flags.tolist() == [START | TERMINATED, START | FINAL | ABANDONED]
    assert steps.columns["reward"][0] == 4.0
    assert made.forget(EVERY) is None
    assert begin(made, [0], [5], [True]) is None


def test_growing_keeps_begun_steps():
    made = recorder(1)
    begin(made, [0], [1], [True])
    made.grow(4)
    made.reward(np.array([0]), np.array([0.5]), False)
    steps = begin(made, [0, 3], [2, 7], [False, True])
    assert steps.columns["observation"].tolist() == [[1, -1]]


def test_a_cut_of_an_environment_without_a_step_brings_only_the_state():
    made = recorder()
    steps = made.cut_off(np.array([2]), states(3))
    assert steps.flags.tolist() == [FINAL]


IMAGES = Columns((2, 2), np.uint8, (), np.int64, open_types=frozenset({""}))
BYTES, FLOATS = np.full((1, 2, 2), 51, np.uint8), np.full((1, 2, 2), 0.2, np.float32)


class Stores:
    """What other workers have begun to store."""

    def __init__(self, kind):
        self._kind = np.dtype(kind)

    def stored_types(self, types):
        return dict.fromkeys(types, self._kind)


def of_images(kind):
    made = StepRecorder(IMAGES, sink=Stores(kind))
    made.grow(1)
    return made


def test_the_first_image_of_a_worker_takes_the_type_that_other_workers_store():
    np.testing.assert_allclose(of_images(np.float32).fitting(BYTES), FLOATS)
    assert of_images(np.uint8).fitting(BYTES) is BYTES


def test_an_image_that_cannot_become_that_is_refused_and_the_next_one_is_taken():
    made = of_images(np.uint8)
    with pytest.raises(InvalidState, match=r"a state is of float32, .* stored with uint8"):
        made.fitting(FLOATS)
    assert made.fitting(BYTES) is BYTES


def test_an_actor_that_sends_bytes_where_floats_are_stored_is_refused():
    with pytest.raises(InvalidState, match=r"is of uint8, .* stored with float32"):
        of_images(np.float32).observe(np.array([0]), BYTES, True)

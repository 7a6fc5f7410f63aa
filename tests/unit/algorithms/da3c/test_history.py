"""Stacking of states across episode starts, and the check of what a client sends."""

import numpy as np
import pytest

from relaax.algorithm_base import InvalidState


@pytest.fixture(name="history_of")
def _history_of(da3c_module):
    return da3c_module("agent.history").History


def test_the_first_state_of_an_episode_fills_the_history(history_of):
    assert history_of((2,), 3).start([1, 2]).tolist() == [1, 2, 1, 2, 1, 2]


def test_each_state_pushes_the_oldest_one_out(history_of):
    history = history_of((1,), 3)
    history.start([1])
    seen = [history.push([number]).tolist() for number in (2, 3, 4)]
    assert seen == [[1, 1, 2], [1, 2, 3], [2, 3, 4]]


def test_a_new_episode_remembers_nothing_of_the_one_before(history_of):
    history = history_of((1,), 2)
    history.start([1])
    history.push([2])
    assert history.start([9]).tolist() == [9, 9]


def test_observations_already_given_do_not_change(history_of):
    history = history_of((1,), 2)
    first = history.start([1])
    history.push([2])
    assert first.tolist() == [1, 1]


def test_grey_images_are_stacked_along_a_new_last_axis(history_of):
    history = history_of((2, 2), 3)
    history.start(np.full((2, 2), 1, np.uint8))
    observation = history.push(np.full((2, 2), 7, np.uint8))
    assert observation.shape == (2, 2, 3)
    assert observation.dtype == np.uint8
    assert observation[0, 0].tolist() == [1, 1, 7]


def test_coloured_images_are_stacked_along_their_channels(history_of):
    history = history_of((2, 2, 3), 2)
    first = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    history.start(first)
    observation = history.push(first + 100)
    assert observation[0, 0].tolist() == [0, 1, 2, 100, 101, 102]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ([1, 2, 3], r"shape \[3\], the configuration says state_size: \[2\]"),
        (5, r"shape \[\]"),
        (None, "not an array of numbers"),
        ("12", "not an array of numbers"),
        ([1, "x"], "not an array of numbers"),
        ([[1, 2], [3]], "not an array of numbers"),
        ({"a": 1}, "not an array of numbers"),
        (np.array([1j, 2]), "not an array of numbers"),
        ([1e39, 0], "not finite in float32"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_with_the_reason(history_of, state, reason):
    with pytest.raises(InvalidState, match=reason):
        history_of((2,), 1).start(state)


def test_a_change_from_bytes_to_floats_inside_an_episode_is_refused(history_of):
    history = history_of((2, 2), 2)
    history.start(np.zeros((2, 2), np.uint8))
    with pytest.raises(InvalidState, match="a state of float32 came in an episode of uint8"):
        history.push(np.zeros((2, 2), np.float32))

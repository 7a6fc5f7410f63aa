"""Stacking of states across episode starts, and the check of what a client sends."""

import numpy as np
import pytest

from relaax.acting.preprocessor import Preprocessor
from relaax.errors import InvalidState
from relaax.learning.shapes import stacked_shape


def preprocessor_of(state_size, history_len, environments=1):
    preprocessor = Preprocessor(tuple(state_size), history_len)
    preprocessor.grow(environments)
    return preprocessor


def observe(preprocessor, states, starts=None, slots=None):
    slots = np.arange(len(states)) if slots is None else np.array(slots)
    starts = None if starts is None else np.array(starts)
    return preprocessor.observe(slots, preprocessor.check(states), starts)


def test_the_first_state_of_an_episode_fills_the_history():
    assert observe(preprocessor_of([2], 3), [[1, 2]], [True]).tolist() == [[1, 2, 1, 2, 1, 2]]


def test_each_state_pushes_the_oldest_one_out():
    preprocessor = preprocessor_of([1], 3)
    observe(preprocessor, [[1]], [True])
    seen = [observe(preprocessor, [[number]])[0].tolist() for number in (2, 3, 4)]
    assert seen == [[1, 1, 2], [1, 2, 3], [2, 3, 4]]


def test_environments_have_histories_of_their_own():
    preprocessor = preprocessor_of([1], 2, environments=3)
    observe(preprocessor, [[1], [10], [100]], [True] * 3)
    assert observe(preprocessor, [[101], [2]], slots=[2, 0]).tolist() == [[100, 101], [1, 2]]
    mixed = observe(preprocessor, [[3], [50], [102]], [False, True, False])
    assert mixed.tolist() == [[2, 3], [50, 50], [101, 102]]


def test_observations_already_given_do_not_change():
    preprocessor = preprocessor_of([1], 2)
    first = observe(preprocessor, [[1]], [True])
    observe(preprocessor, [[2]])
    assert first.tolist() == [[1, 1]]


def test_numbers_are_stacked_into_a_vector():
    preprocessor = preprocessor_of([], 3, environments=2)
    observe(preprocessor, [0.5, 7], [True, True])
    assert observe(preprocessor, [1, 8]).tolist() == [[0.5, 0.5, 1], [7, 7, 8]]


def test_grey_images_are_stacked_along_a_new_last_axis():
    preprocessor = preprocessor_of([20, 20], 3)
    observe(preprocessor, np.full((1, 20, 20), 1, np.uint8), [True])
    observation = observe(preprocessor, np.full((1, 20, 20), 7, np.uint8))
    assert observation.shape == (1, 20, 20, 3)
    assert observation.dtype == np.uint8
    assert observation[0, 0, 0].tolist() == [1, 1, 7]


def test_coloured_images_are_stacked_along_their_channels():
    preprocessor = preprocessor_of([20, 20, 3], 2)
    first = np.arange(1200, dtype=np.uint16).reshape(1, 20, 20, 3).astype(np.uint8)
    observe(preprocessor, first, [True])
    observation = observe(preprocessor, first + np.uint8(100))
    assert observation[0, 0, 0].tolist() == [0, 1, 2, 100, 101, 102]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ([1, 2, 3], r"shape \[3\], the configuration says state_size: \[2\]"),
        (5, r"shape \[\]"),
        (None, "not an array of numbers: a state is None"),
        ([1, None], r"not an array of numbers: a state\[1\] is None"),
        ("12", "not an array of numbers"),
        ([1, "x"], "not an array of numbers"),
        ([[1, 2], [3]], r"not an array of numbers: a state\[1\] has the shape \[1\], and"),
        ({"a": 1}, "not an array of numbers"),
        (np.array([1j, 2]), "not an array of numbers"),
        ([1e39, 0], "not finite in float32"),
        (np.array([np.nan, 0], np.float32), "not finite in float32"),
        (np.array([np.inf, -np.inf], np.float32), "not finite in float32"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_with_the_reason(state, reason):
    with pytest.raises(InvalidState, match=reason):
        observe(preprocessor_of([2], 1), [state], [True])


def test_huge_values_are_finite_even_if_their_sum_is_not():
    huge = np.full((1, 2), 3e38, np.float32)
    np.testing.assert_array_equal(observe(preprocessor_of([2], 1), huge, [True]), huge)


def test_a_check_changes_nothing():
    preprocessor = preprocessor_of([1], 2)
    observe(preprocessor, [[1]], [True])
    preprocessor.check([[5]])
    assert observe(preprocessor, [[2]]).tolist() == [[1, 2]]


def test_more_room_keeps_the_histories():
    preprocessor = preprocessor_of([1], 2)
    observe(preprocessor, [[1]], [True])
    preprocessor.grow(3)
    assert observe(preprocessor, [[9]], [True], slots=[2]).tolist() == [[9, 9]]
    assert observe(preprocessor, [[2]]).tolist() == [[1, 2]]


@pytest.mark.parametrize("state_size", [(3,), (5, 6), (5, 6, 3)])
def test_the_shape_of_an_observation_is_known_beforehand(state_size):
    observation = observe(preprocessor_of(state_size, 4), np.zeros((1, *state_size)), [True])
    assert observation.shape[1:] == stacked_shape(state_size, 4)


def test_observations_are_stacked_into_a_batch_that_is_padded_already():
    preprocessor = Preprocessor((2,), history_len=2)
    preprocessor.grow(3)
    slots, states = np.array([2, 0]), np.array([[1, 2], [3, 4]], np.float32)
    observations = preprocessor.observe(slots, states, np.array([True, True]), rows=4)
    assert observations.tolist() == [[1, 2, 1, 2], [3, 4, 3, 4], [0] * 4, [0] * 4]
    assert preprocessor.observe(slots, states + 1, None, rows=1).tolist() == [
        [1, 2, 2, 3],
        [3, 4, 4, 5],
    ]


def test_vectors_of_bytes_are_scaled_as_a_network_scales_them():
    checked = Preprocessor((2,), history_len=1).check(np.array([[0, 255]], np.uint8))
    assert checked.dtype == np.float32
    assert checked.tolist() == [[0, 1]]

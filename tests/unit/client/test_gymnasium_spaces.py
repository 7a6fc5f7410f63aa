from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from relaax.client.gymnasium_spaces import (
    UnsupportedSpace,
    UnusableAction,
    action_decoder,
    space_as_json,
    state_encoder,
    vector_action_decoder,
)


def box(*shape: int, dtype: Any = np.float32) -> spaces.Box:
    return spaces.Box(0, 1, shape, dtype)


@pytest.mark.parametrize(
    ("space", "observation", "dtype", "shape"),
    [
        (spaces.Discrete(5), np.int64(3), np.int64, ()),
        (spaces.Discrete(5), 3, np.int64, ()),
        (box(3), np.float32([0.5, 0.25, 1]), np.float32, (3,)),
        (box(3), [0.5, 0.25, 1], np.float32, (3,)),
        (box(), np.float32(0.5), np.float32, ()),
        (box(2, dtype=np.uint8), np.float64([0.5, 0.25]), np.float64, (2,)),
        (spaces.MultiBinary(2), np.int8([0, 1]), np.int8, (2,)),
        (spaces.MultiDiscrete([3, 4]), np.int64([2, 3]), np.int64, (2,)),
    ],
)
def test_observations_are_arrays_of_the_type_that_the_hello_tells(
    space: Any, observation: Any, dtype: Any, shape: tuple[int, ...]
) -> None:
    encoded = state_encoder(space)(observation)
    assert (encoded.dtype, encoded.shape) == (dtype, shape)
    np.testing.assert_array_equal(encoded, observation)


@pytest.mark.parametrize("shape", [(65,), (2, 2), (84, 84)])
def test_an_array_of_the_right_type_is_not_copied(shape: tuple[int, ...]) -> None:
    observation = np.ones(shape, np.uint8)
    assert state_encoder(box(*shape, dtype=np.uint8))(observation) is observation


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({"a": box(2)}),
        spaces.Tuple([box(2)]),
        spaces.Text(5),
        spaces.Sequence(box(2)),
    ],
)
def test_an_observation_that_cannot_be_sent_is_refused_at_once(space: Any) -> None:
    with pytest.raises(UnsupportedSpace, match="FlattenObservation"):
        state_encoder(space)


def test_discrete_actions_begin_at_the_start_of_the_space() -> None:
    decode = action_decoder(spaces.Discrete(3, start=-1))
    assert [decode(action) for action in (0, 1, 2)] == [-1, 0, 1]


@pytest.mark.parametrize("action", [-1, 3, 1.0, True, None, [1], np.float32([1])])
def test_an_action_outside_of_a_discrete_space_is_refused(action: Any) -> None:
    with pytest.raises(UnusableAction, match=r"from 0 to 2|the actions 0 to 2"):
        action_decoder(spaces.Discrete(3))(action)


def test_box_actions_are_cast_shaped_and_clipped() -> None:
    space = spaces.Box(np.float32([[-1, 0]]), np.float32([[1, 2]]))
    action = action_decoder(space)(np.float64([-5, 1.5]))
    assert action.dtype == np.float32
    assert action.tolist() == [[-1, 1.5]]
    assert space.contains(action)


@pytest.mark.parametrize("action", [1, None, np.float32([1]), np.zeros((3, 3)), "ab"])
def test_an_action_of_another_size_is_refused(action: Any) -> None:
    with pytest.raises(UnusableAction, match=r"an array of 2 numbers.*action_size .* should be 2"):
        action_decoder(box(2))(action)


def test_an_action_that_cannot_be_asked_for_is_refused_at_once() -> None:
    with pytest.raises(UnsupportedSpace, match="Discrete or Box"):
        action_decoder(spaces.MultiBinary(3))


class TestActionsOfManyEnvironments:
    def test_discrete_ones_begin_at_the_start_of_the_space(self) -> None:
        decode = vector_action_decoder(spaces.Discrete(3, start=-1))
        assert decode(np.int64([0, 2, 1])).tolist() == [-1, 1, 0]

    @pytest.mark.parametrize(
        "action", [np.int64([0, 3]), np.int64([-1, 0]), np.float32([1, 1]), np.int64([[0], [1]])]
    )
    def test_one_outside_of_a_discrete_space_is_refused(self, action: Any) -> None:
        with pytest.raises(UnusableAction, match=r"from 0 to 2|the actions 0 to 2"):
            vector_action_decoder(spaces.Discrete(3))(action)

    def test_arrays_are_cast_shaped_and_clipped(self) -> None:
        space = spaces.Box(np.float32([[-1, 0]]), np.float32([[1, 2]]))
        actions = vector_action_decoder(space)(np.float64([[-5, 1.5], [0.5, 9]]))
        assert actions.dtype == np.float32
        assert actions.tolist() == [[[-1, 1.5]], [[0.5, 2]]]

    @pytest.mark.parametrize("action", [np.int64([1, 1]), np.zeros((2, 3)), np.zeros((2, 1))])
    def test_arrays_of_another_size_are_refused(self, action: Any) -> None:
        with pytest.raises(UnusableAction, match=r"takes 2 numbers.*action_size .* should be 2"):
            vector_action_decoder(box(2))(action)

    def test_one_that_cannot_be_asked_for_is_refused_at_once(self) -> None:
        with pytest.raises(UnsupportedSpace, match="Discrete or Box"):
            vector_action_decoder(spaces.MultiBinary(3))


@pytest.mark.parametrize(
    ("space", "sent"),
    [
        (spaces.Discrete(3, start=-1), {"type": "Discrete", "n": 3}),
        (spaces.MultiDiscrete([3, 2]), {"type": "MultiDiscrete", "nvec": [3, 2]}),
        (spaces.MultiBinary(5), {"type": "MultiBinary", "shape": [5]}),
        (box(84, 84, dtype=np.uint8), {"type": "Box", "dtype": "uint8", "shape": [84, 84]}),
        (spaces.Dict({"a": box(2)}), None),
    ],
)
def test_a_space_is_sent_in_words_of_json(space: Any, sent: Any) -> None:
    assert space_as_json(space) == sent

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from relaax.client.gymnasium_spaces import (
    UnsupportedSpace,
    UnusableAction,
    action_decoder,
    state_encoder,
)


def box(*shape: int, dtype: Any = np.float32) -> spaces.Box:
    return spaces.Box(0, 1, shape, dtype)


@pytest.mark.parametrize(
    ("space", "observation", "state"),
    [
        (spaces.Discrete(5), np.int64(3), 3),
        (box(3), np.float32([0.5, 0.25, 1]), [0.5, 0.25, 1.0]),
        (box(64), np.zeros(64, np.float32), [0.0] * 64),
        (box(), np.float32(0.5), 0.5),
        (spaces.MultiBinary(2), np.int8([0, 1]), [0, 1]),
        (spaces.MultiDiscrete([3, 4]), np.int64([2, 3]), [2, 3]),
    ],
)
def test_small_observations_are_plain_numbers(space: Any, observation: Any, state: Any) -> None:
    encoded = state_encoder(space)(observation)
    assert encoded == state
    assert type(encoded) is type(state)


@pytest.mark.parametrize("shape", [(65,), (2, 2), (84, 84)])
def test_other_observations_are_arrays(shape: tuple[int, ...]) -> None:
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

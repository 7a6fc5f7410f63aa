"""What is sent for observations of each of Gymnasium's spaces, and what the hello says of them."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from relaax.client import gymnasium_observations
from relaax.client.gymnasium_observations import observation_space_as_json, state_encoder
from relaax.client.gymnasium_spaces import UnsupportedSpace
from relaax.spaces import space_of


def box(*shape: int, dtype: Any = np.float32) -> spaces.Box:
    return spaces.Box(0, 1, shape, dtype)


@pytest.mark.parametrize(
    ("space", "observation", "dtype", "shape"),
    [
        (box(3), np.float32([0.5, 0.25, 1]), np.float32, (3,)),
        (box(3), [0.5, 0.25, 1], np.float64, (3,)),
        (box(2), np.float64([5_400_000.03, 0.1]), np.float64, (2,)),
        (box(2), np.float16([0.5, 0.25]), np.float32, (2,)),
        (box(2), np.uint8([0, 200]), np.float32, (2,)),
        (box(1), np.int64([1_764_280_010]), np.float64, (1,)),
        (box(2, dtype=np.float64), np.float32([0.5, 0.25]), np.float64, (2,)),
        (box(), np.float32(0.5), np.float32, ()),
        (spaces.Box(-np.inf, np.inf, (1,)), np.float32([-1e30]), np.float32, (1,)),
        (box(2, dtype=np.uint8), np.float64([0.5, 0.25]), np.float64, (2,)),
        (spaces.MultiBinary(2), np.int8([0, 1]), np.int8, (2,)),
        (spaces.MultiBinary([2, 1]), np.int8([[0], [1]]), np.int8, (2, 1)),
    ],
)
def test_observations_are_arrays_of_a_type_that_holds_all_that_was_observed(
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
    ("space", "observation", "sent"),
    [
        (spaces.Discrete(4), 2, [0, 0, 1, 0]),
        (spaces.Discrete(3, start=-1), np.int64(-1), [1, 0, 0]),
        (spaces.MultiDiscrete([2, 3]), np.int64([1, 0]), [0, 1, 1, 0, 0]),
        (spaces.MultiDiscrete([2, 3], start=[5, 7]), np.int64([5, 9]), [1, 0, 0, 0, 1]),
        (spaces.MultiDiscrete([[2], [2]]), np.int64([[1], [0]]), [0, 1, 1, 0]),
    ],
)
def test_names_of_things_become_one_hot_vectors(space: Any, observation: Any, sent: Any) -> None:
    encode = state_encoder(space)
    assert encode(observation).dtype == np.float32
    assert encode(observation).tolist() == sent
    several = encode(np.stack([observation] * 3))
    assert several.tolist() == [sent] * 3
    assert observation_space_as_json(space) == space_of(several)


@pytest.mark.parametrize("observation", [-1, 4, np.array([0, 4])])
def test_an_integer_outside_of_its_space_is_the_environments_error(observation: Any) -> None:
    with pytest.raises(ValueError, match=r"of Discrete\(4\)"):
        state_encoder(spaces.Discrete(4))(observation)


NESTED = spaces.Dict(
    {
        "camera": box(2, 2, dtype=np.uint8),
        "arm": spaces.Dict({"joint": spaces.Discrete(2), "angles": box(3)}),
        "legs": spaces.Tuple([box(1), spaces.MultiBinary(2)]),
    }
)
NAMES = ["arm/angles", "arm/joint", "camera", "legs/0", "legs/1"]


def test_the_parts_of_a_dict_or_a_tuple_are_sent_by_name() -> None:
    encoded = state_encoder(NESTED)(NESTED.sample())
    assert sorted(encoded) == NAMES
    assert {name: array.shape for name, array in encoded.items()} == {
        "arm/angles": (3,), "arm/joint": (2,), "camera": (2, 2), "legs/0": (1,), "legs/1": (2,),
    }  # fmt: skip
    assert encoded["camera"].dtype == np.uint8


def test_the_hello_announces_the_spaces_by_name() -> None:
    announced = observation_space_as_json(NESTED)
    assert announced["type"] == "Dict"
    assert sorted(announced["spaces"]) == NAMES
    assert announced["spaces"]["arm/joint"] == {"type": "Box", "dtype": "float32", "shape": [2]}
    assert announced["spaces"]["legs/1"] == {"type": "MultiBinary", "shape": [2]}


@pytest.mark.parametrize(
    ("space", "name"),
    [
        (spaces.Text(5), r"Text\("),
        (spaces.Sequence(box(2)), r"Sequence\("),
        (spaces.Graph(box(2), None), r"Graph\("),
        (spaces.Dict({"a": box(2), "b": spaces.Dict({"c": spaces.Text(5)})}), "'b/c'"),
        (spaces.Tuple([box(2), spaces.Text(5)]), "'1'"),
    ],
)
def test_an_observation_that_cannot_be_sent_is_refused_by_name(space: Any, name: str) -> None:
    for refused in (state_encoder, observation_space_as_json):
        with pytest.raises(UnsupportedSpace, match=f"{name}.*FlattenObservation.*Transform"):
            refused(space)


def test_a_one_hot_vector_that_would_be_too_large_is_refused() -> None:
    largest = gymnasium_observations.MAX_ONE_HOT
    state_encoder(spaces.Discrete(largest))
    with pytest.raises(UnsupportedSpace, match=rf"would be {largest + 1} numbers.*Transform"):
        state_encoder(spaces.Discrete(largest + 1))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({}),
        spaces.Dict({"a": spaces.Dict({"b": box(1)}), "a/b": box(1)}),
        spaces.Dict({"x" * 256: box(1)}),
    ],
)
def test_names_that_cannot_be_sent_are_refused(space: Any) -> None:
    with pytest.raises(UnsupportedSpace, match=r"cannot be sent: .*(name|not 0)"):
        state_encoder(space)

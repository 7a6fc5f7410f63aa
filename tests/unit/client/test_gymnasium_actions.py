"""What becomes of the server's actions, for each of Gymnasium's action spaces."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from relaax.client.gymnasium_actions import (
    UnusableAction,
    action_decoder,
    action_space_as_json,
    vector_action_decoder,
)
from relaax.client.gymnasium_spaces import UnsupportedSpace


def box(*shape: int, dtype: Any = np.float32) -> spaces.Box:
    return spaces.Box(0, 1, shape, dtype)


def test_discrete_actions_begin_at_the_start_of_the_space() -> None:
    decode = action_decoder(spaces.Discrete(3, start=-1))
    assert [decode(action) for action in (0, 1, 2)] == [-1, 0, 1]


@pytest.mark.parametrize("action", [-1, 3, 1.0, True, None, [1], np.float32([1])])
def test_an_action_outside_of_a_discrete_space_is_refused(action: Any) -> None:
    with pytest.raises(UnusableAction, match="from 0 to 2"):
        action_decoder(spaces.Discrete(3))(action)


def test_box_actions_are_cast_shaped_and_clipped() -> None:
    space = spaces.Box(np.float32([[-1, 0]]), np.float32([[1, 2]]))
    action = action_decoder(space)(np.float64([-5, 1.5]))
    assert action.dtype == np.float32
    assert action.tolist() == [[-1, 1.5]]
    assert space.contains(action)


@pytest.mark.parametrize("action", [1, None, np.float32([1]), np.zeros((3, 3)), "ab"])
def test_an_action_of_another_size_is_refused(action: Any) -> None:
    with pytest.raises(UnusableAction, match=r"takes 2 numbers.*action_size .* should be 2"):
        action_decoder(box(2))(action)


@pytest.mark.parametrize(
    ("space", "sent", "taken"),
    [
        (spaces.Box(-np.inf, np.inf, (2,)), [-1e30, 5], [np.float32(-1e30), 5]),
        (spaces.Box(0, np.inf, (2,)), [-1, 1e30], [0, np.float32(1e30)]),
        (spaces.Box(-np.inf, 2, (2,)), [-7, 7], [-7, 2]),
        (spaces.Box(-2, 2, (2,), np.int32), [0.6, 1e12], [1, 2]),
        (spaces.Box(0, 255, (2,), np.uint8), [-3, 254.6], [0, 255]),
        (spaces.Box(0, 1, (3,), np.bool_), [0.2, 0.7, 5], [False, True, True]),
        (spaces.Box(-np.inf, np.inf, (2,), np.float16), [1e30, 0], [65504, 0]),
    ],
)
def test_arrays_are_clipped_to_the_bounds_that_there_are(space: Any, sent: Any, taken: Any) -> None:
    action = action_decoder(space)(np.float32(sent))
    assert action.dtype == space.dtype
    assert action.tolist() == taken
    assert space.contains(action)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64])
def test_numbers_beyond_whole_ones_of_their_size_become_the_largest(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    space = spaces.Box(limits.min, limits.max, (2,), dtype)
    smallest, largest = action_decoder(space)(np.float64([-1e30, 1e30])).tolist()
    assert smallest == limits.min
    assert 0.999 * limits.max < largest <= limits.max


def test_a_box_of_one_number_takes_a_number() -> None:
    assert action_decoder(spaces.Box(-1, 1, ()))(7.5) == 1
    assert action_decoder(spaces.Box(-1, 1, (1,)))(0.5).tolist() == [0.5]


@pytest.mark.parametrize(
    ("space", "sent", "taken"),
    [
        (spaces.MultiDiscrete([3, 2]), [2, 0], [2, 0]),
        (spaces.MultiDiscrete([3, 2], start=[10, -1]), [2, 0], [12, -1]),
        (spaces.MultiDiscrete([[3], [2]]), [2, 1], [[2], [1]]),
        (spaces.MultiBinary(3), [0, 1, 1], [0, 1, 1]),
        (spaces.MultiBinary([2, 1]), [1, 0], [[1], [0]]),
    ],
)
def test_several_choices_have_the_shape_and_type_of_their_space(
    space: Any, sent: Any, taken: Any
) -> None:
    for action in (sent, np.int64(sent)):
        decoded = action_decoder(space)(action)
        assert (decoded.tolist(), decoded.dtype) == (taken, space.dtype)
        assert space.contains(decoded)


@pytest.mark.parametrize("action", [[0], [0, 1, 0], [0.0, 1.0], 1, None, [0, 2], [-1, 0], "ab"])
def test_choices_outside_of_their_space_are_refused(action: Any) -> None:
    for space in (spaces.MultiDiscrete([3, 2]), spaces.MultiBinary(2)):
        with pytest.raises(UnusableAction, match="the server sent"):
            action_decoder(space)(action)


BOXES = spaces.Dict({"arm": box(2), "legs": spaces.Tuple([box(), spaces.Box(0, 9, (1, 1))])})
CHOICES = spaces.Tuple(
    [
        spaces.Discrete(3, start=5),
        spaces.Dict({"flags": spaces.MultiBinary(2), "gears": spaces.MultiDiscrete([4])}),
    ]
)


class TestNestedActions:
    def test_boxes_are_asked_for_as_one_array(self) -> None:
        assert action_space_as_json(BOXES) == {
            "type": "Box", "dtype": "float32", "shape": [4], "low": 0, "high": [1, 1, 1, 9],
        }  # fmt: skip
        action = action_decoder(BOXES)(np.float32([0.5, -1, 0.25, 7]))
        assert action["arm"].tolist() == [0.5, 0]
        assert [part.tolist() for part in action["legs"]] == [0.25, [[7]]]
        assert BOXES.contains({**action, "legs": tuple(map(np.asarray, action["legs"]))})

    def test_choices_are_asked_for_as_one_of_several_numbers(self) -> None:
        assert action_space_as_json(CHOICES) == {"type": "MultiDiscrete", "nvec": [3, 2, 2, 4]}
        action = action_decoder(CHOICES)(np.int64([2, 1, 0, 3]))
        assert action[0] == 7
        assert {name: part.tolist() for name, part in action[1].items()} == {
            "flags": [1, 0], "gears": [3],
        }  # fmt: skip
        assert CHOICES.contains(action)

    def test_actions_of_many_environments_are_arrays_in_dicts_and_tuples(self) -> None:
        numbers, inner = vector_action_decoder(CHOICES)(np.int64([[2, 1, 0, 3], [0, 0, 1, 1]]))
        assert numbers.tolist() == [7, 5]
        assert inner["flags"].tolist() == [[1, 0], [0, 1]]
        assert inner["gears"].tolist() == [[3], [1]]

    def test_an_array_of_another_size_is_refused(self) -> None:
        with pytest.raises(UnusableAction, match="takes 4 numbers"):
            action_decoder(BOXES)(np.zeros(3, np.float32))

    @pytest.mark.parametrize("space", [spaces.Tuple([box(2), spaces.Discrete(2)]), spaces.Dict({})])
    def test_boxes_and_choices_together_are_refused(self, space: Any) -> None:
        for refused in (action_decoder, vector_action_decoder, action_space_as_json):
            with pytest.raises(UnsupportedSpace, match=r"all spaces inside are Box.*Transform"):
                refused(space)


@pytest.mark.parametrize(
    ("space", "name"),
    [
        (spaces.Text(3), r"Text\("),
        (spaces.Sequence(box(1)), r"Sequence\("),
        (spaces.Graph(box(1), None), r"Graph\("),
        (spaces.Dict({"word": spaces.Text(3)}), r"Text\(.*'word'"),
    ],
)
def test_an_action_that_cannot_be_asked_for_is_refused_by_name(space: Any, name: str) -> None:
    for refused in (action_decoder, vector_action_decoder, action_space_as_json):
        with pytest.raises(UnsupportedSpace, match=rf"{name}.*Discrete.*TransformAction"):
            refused(space)


class TestActionsOfManyEnvironments:
    def test_discrete_ones_begin_at_the_start_of_the_space(self) -> None:
        decode = vector_action_decoder(spaces.Discrete(3, start=-1))
        assert decode(np.int64([0, 2, 1])).tolist() == [-1, 1, 0]

    @pytest.mark.parametrize(
        "action", [np.int64([0, 3]), np.int64([-1, 0]), np.float32([1, 1]), np.int64([[0], [1]])]
    )
    def test_an_action_of_many_outside_of_a_discrete_space_is_refused(self, action: Any) -> None:
        with pytest.raises(UnusableAction, match="from 0 to 2"):
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

    def test_several_choices_of_each_are_rows(self) -> None:
        decode = vector_action_decoder(spaces.MultiDiscrete([3, 2], start=[1, 0]))
        assert decode(np.int64([[2, 0], [0, 1]])).tolist() == [[3, 0], [1, 1]]
        with pytest.raises(UnusableAction, match=r"number 1 of an action .* is from 0 to 1"):
            decode(np.int64([[2, 0], [0, 2]]))

    def test_no_actions_are_no_rows(self) -> None:
        assert vector_action_decoder(spaces.MultiBinary(3))(np.zeros((0, 3), int)).shape == (0, 3)


@pytest.mark.parametrize(
    ("space", "sent"),
    [
        (spaces.Discrete(3, start=-1), {"type": "Discrete", "n": 3}),
        (spaces.MultiDiscrete([3, 2]), {"type": "MultiDiscrete", "nvec": [3, 2]}),
        (spaces.MultiBinary(5), {"type": "MultiBinary", "shape": [5]}),
        (
            box(84, 84, dtype=np.uint8),
            {"type": "Box", "dtype": "uint8", "shape": [84, 84], "low": 0, "high": 1},
        ),
        (
            spaces.Box(np.float32([-0.1, 0]), np.float32([np.inf, 3.4e38])),
            {
                "type": "Box",
                "dtype": "float32",
                "shape": [2],
                "low": [-0.1, 0.0],
                "high": [None, None],
            },
        ),
    ],
)
def test_a_space_is_sent_in_words_of_json(space: Any, sent: Any) -> None:
    assert action_space_as_json(space) == sent

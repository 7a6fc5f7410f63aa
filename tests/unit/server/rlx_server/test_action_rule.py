"""Which actions an algorithm may return: the server notices before any client does."""

import numpy as np
import pytest

from relaax.learning.distributions import distribution_of
from relaax.server.rlx_server.worker.action_rule import ActionRule, UnusableActions
from relaax.spaces import box, discrete

CHOICES = {"type": "MultiDiscrete", "nvec": [3, 2]}
FLAGS = {"type": "MultiBinary", "shape": [2]}


def usable(space, actions):
    rule = ActionRule(space, "gambler")
    return rule.usable(rule.counted(actions, 2))


@pytest.mark.parametrize(
    ("space", "actions"),
    [
        (discrete(3), [0, 2]),
        (discrete(3), np.array([0, 2], np.uint8)),
        (discrete(3), [np.int32(0), np.int64(2)]),
        (CHOICES, [[2, 0], [0, 1]]),
        (CHOICES, [np.array([2, 0]), np.array([0, 1])]),
        (FLAGS, [[True, False], [False, True]]),
        (FLAGS, np.array([[1, 0], [0, 1]], np.int8)),
    ],
)
def test_choices_in_their_range_become_integers_of_64_bits(space, actions):
    taken = usable(space, actions)
    assert taken.dtype == np.int64
    np.testing.assert_array_equal(taken, np.asarray(actions))


@pytest.mark.parametrize("space", [discrete(3), CHOICES, FLAGS, box("float32", (2,))])
def test_the_librarys_own_actions_are_of_the_usual_type(space):
    """Others are looked at more closely, one request after the other."""
    distribution = distribution_of(space)
    outputs = np.zeros((2, distribution.outputs), np.float32)
    actions = distribution.choose(outputs, distribution.noise(np.random.default_rng(0), 2))
    assert actions.dtype in ActionRule(space, "gambler").dtypes


@pytest.mark.parametrize(
    ("actions", "dtype"),
    [
        (np.float32([[-9, 9], [0, 1e30]]), np.float32),
        (np.ones((2, 2)), np.float64),
        ([[0.5, 1], [2, 3]], np.float64),
        (np.ones((2, 2), np.int64), np.float32),
    ],
)
def test_finite_numbers_are_actions_of_a_box_within_its_bounds_or_not(actions, dtype):
    taken = usable({**box("float32", (2,)), "low": -1, "high": 1}, actions)
    assert taken.dtype == dtype
    np.testing.assert_array_equal(taken, actions)


@pytest.mark.parametrize(
    ("box_of", "actions", "dtype"),
    [
        ("uint8", [[0, 255], [3, 4]], np.uint8),
        ("int16", np.int64([[-32768, 2], [3, 4]]), np.int16),
        ("int64", [[2**62, 2], [3, 4]], np.int64),
        ("uint64", np.uint64([[2**63, 2], [3, 4]]), np.uint64),
        ("int64", [[0.5, 2], [3, 4]], np.float64),
    ],
)
def test_integers_for_a_box_of_integers_are_of_its_type(box_of, actions, dtype):
    taken = usable(box(box_of, (2,)), actions)
    assert taken.dtype == dtype
    np.testing.assert_array_equal(taken, np.asarray(actions))


@pytest.mark.parametrize(
    ("space", "actions", "reason"),
    [
        (discrete(3), [0], "1 actions for 2 environments"),
        (discrete(3), [0, 1, 2], "3 actions for 2 environments"),
        (discrete(3), 1, "array.1. for 2 environments"),
        (discrete(3), None, "for 2 environments"),
        (discrete(3), [0, 3], "the action 3, which is not from 0 to 2"),
        (discrete(3), np.array([-1, 0]), "the action -1, which is not from 0 to 2"),
        (discrete(3), [0.5, 1.0], "an array of float64, not of integers: 0.5"),
        (discrete(3), [None, 1], "None; its action space"),
        (box("float32", (1,)), [None, None], "None; its action space"),
        (discrete(3), [True, False], "an array of bool, not of integers"),
        (discrete(3), ["a", "b"], "not of integers"),
        (discrete(3), [[0], [1]], r"actions of shape \[1\] instead of \[\]"),
        (discrete(3), [[0], [1, 2]], "no array of numbers"),
        (CHOICES, [0, 1], r"actions of shape \[\] instead of \[2\]"),
        (CHOICES, [[0, 0], [0, 2]], "the action 2, which is not from 0 to 1"),
        (FLAGS, [[0, 0], [2, 1]], "the action 2, which is not from 0 to 1"),
        (box("float32", (2,)), [[0, 0], [np.nan, 1]], "the action nan, which is not finite"),
        (box("float32", (2,)), np.float32([[0, np.inf], [0, 1]]), "the action inf"),
        (box("float32", (2,)), [0.5, 1], r"actions of shape \[\] instead of \[2\]"),
        (box("float32", (1,)), [["a"], ["b"]], r"an array of <U1: \['a'\]"),
        (box("uint8", (2,)), [[0, 256], [0, 1]], "the action 256, which is no uint8"),
        (box("uint64", (2,)), [[0, -1], [0, 1]], "the action -1, which is no uint64"),
        (None, [1], "1 actions for 2 environments"),
        (None, 5, "5 for 2 environments"),
        (None, [1.0, np.inf], "the action inf, which is not finite"),
    ],
)
def test_an_unusable_action_is_refused_with_the_name_of_the_algorithm(space, actions, reason):
    with pytest.raises(UnusableActions, match=rf"the algorithm gambler returned .*{reason}"):
        usable(space, actions)


def test_the_error_says_the_action_space():
    with pytest.raises(UnusableActions, match=r'its action space is \{"type": "Discrete", "n": 3'):
        usable(discrete(3), [0, 3])


@pytest.mark.parametrize("actions", [[1, 2], ["left", {"x": 1}], [[1], [2, 3]], np.ones((2, 5))])
def test_without_a_space_actions_stay_the_same(actions):
    assert usable(None, actions) is actions


@pytest.mark.parametrize("space", [discrete(3), CHOICES, box("float32", (2,)), None])
@pytest.mark.parametrize("actions", [[], np.zeros(0), np.zeros((0, 7), np.int64)])
def test_where_no_action_is_wanted_any_empty_array_will_do(space, actions):
    rule = ActionRule(space, "gambler")
    assert len(rule.usable(rule.counted(actions, 0))) == 0

"""Spaces that an algorithm's configuration gives are checked before a client comes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from relaax.algorithm_base import ConfigBase
from relaax.configuration.space_check import require_spaces
from relaax.errors import ConfigurationError
from relaax.spaces import box, discrete

DISCRETE = discrete(2)


def check(space, action_space=None):
    config = SimpleNamespace(observation_space=lambda: space, action_space=lambda: action_space)
    require_spaces(config, Path("/mine"))


def named(**spaces):
    return {"type": "Dict", "spaces": spaces}


@pytest.mark.parametrize(
    "space",
    [
        None,
        DISCRETE,
        box("float32", (4,)),
        box("float32", ()),
        {"type": "Box", "shape": [84, 84, 4], "low": 0},
        {"type": "MultiDiscrete", "nvec": [3, 2]},
        {"type": "MultiBinary", "shape": [5]},
        {"type": "Dict", "spaces": {"camera": box("uint8", (84, 84)), "speed": DISCRETE}},
        {"type": "Tuple", "spaces": [DISCRETE, DISCRETE]},
    ],
)
def test_a_space_of_each_kind_is_accepted(space):
    check(space)


@pytest.mark.parametrize(
    ("space", "reason"),
    [
        (5, "returns 5: a space must be a dict"),
        ({}, "unknown type None; known types are Box, Discrete,"),
        ({"type": "box"}, "unknown type 'box'; did you mean Box?"),
        ({"type": ["Box"]}, r"unknown type \['Box'\]"),
        ({"type": "Box"}, "shape must be a list of positive integers"),
        ({"type": "Box", "shape": (4,)}, "shape must be a list of positive integers"),
        ({"type": "Box", "shape": [4, 0]}, "shape must be a list of positive integers"),
        ({"type": "Box", "shape": [2], "low": [0, 1, 2]}, "low must be one number, or lists of"),
        ({"type": "Box", "shape": [2], "low": 1, "high": [2, 0]}, "low must not lie above high"),
        ({"type": "Box", "shape": [2], "high": float("inf")}, "it cannot be written as JSON"),
        ({"type": "Discrete", "n": True}, "n must be a positive integer"),
        ({"type": "MultiDiscrete", "nvec": 3}, "nvec must be a list of positive integers"),
        ({"type": "MultiDiscrete", "nvec": []}, "nvec must be a list of positive integers"),
        ({"type": "Dict", "spaces": [DISCRETE]}, "spaces must be a dict of spaces by name"),
        ({"type": "Dict", "spaces": {"speed": {"type": "Box"}}}, "speed: shape must be a list"),
        ({"type": "Tuple", "spaces": {}}, "spaces must be a list of spaces"),
        ({"type": "Tuple", "spaces": [DISCRETE, 5]}, "1: a space must be a dict"),
        ({"type": "Dict", "spaces": {5: DISCRETE}}, "a space is a text, and not empty: 5"),
        ({"type": "Dict", "spaces": {"": DISCRETE}}, "a space is a text, and not empty: ''"),
        (named(arm={"type": "Dict", "spaces": {5: DISCRETE}}), "arm: the name of a space is"),
        (named(**{"a/b": DISCRETE, "a": named(b=DISCRETE)}), "two observations are named 'a/b'"),
        (named(**{"x" * 200: named(**{"y" * 55: DISCRETE})}), "has at most 255 bytes"),
        (named(**{"\ud800": DISCRETE}), "is no Unicode"),
        (named(**{str(n): DISCRETE for n in range(256)}), "1 to 255 arrays by name, not 256"),
        (named(), "1 to 255 arrays by name, not 0"),
        (box("float31", (4,)), "dtype must be a type of numbers such as 'float32', not 'float31'"),
        (box("str", (4,)), "dtype must be a type of numbers"),
        ({**DISCRETE, "low": {1}}, "it cannot be written as JSON"),
    ],
)
def test_a_malformed_space_is_refused_with_the_reason(space, reason):
    with pytest.raises(ConfigurationError, match=reason) as error:
        check(space)
    assert str(error.value).startswith("algorithm /mine: Config.observation_space returns ")


@pytest.mark.parametrize(
    "space",
    [DISCRETE, box("int8", (4,)), {"type": "MultiDiscrete", "nvec": [3, 2]}, box("float32", ())],
)
def test_actions_are_one_array(space):
    check(None, space)


@pytest.mark.parametrize("space", [named(arm=DISCRETE), {"type": "Tuple", "spaces": [DISCRETE]}])
def test_actions_of_several_arrays_are_refused_with_what_to_do(space):
    reason = rf"an action is one array, and no {space['type']}: give one Box or one Multi"
    with pytest.raises(ConfigurationError, match=reason) as error:
        check(None, space)
    assert str(error.value).startswith("algorithm /mine: Config.action_space returns ")


def test_a_configuration_without_spaces_accepts_any():
    require_spaces(ConfigBase({}), Path("/mine"))
    require_spaces(SimpleNamespace(), Path("/mine"))

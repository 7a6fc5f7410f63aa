"""What a written policy takes, by name, shape and type."""

import numpy as np
import pytest
from trained import DISCRETE, algorithm_of

from relaax.errors import ConfigurationError
from relaax.server.export.signature import signature_of, zeros_of


def signature(has_float_images=False, **section):
    _, config = algorithm_of("da3c", {**DISCRETE, **section})
    initial = np.zeros(config.network.manifest.size, np.float32)
    return signature_of(config.describe_policy(initial), has_float_images)


def inputs(**section):
    return [(each.name, each.shape, each.dtype) for each in signature(**section).inputs]


def test_a_vector_is_all_that_a_policy_without_memory_takes():
    assert inputs() == [("state", (4,), "float32")]


def test_what_is_remembered_is_taken_again_and_an_episode_s_start_is_said():
    found = inputs(state_size=[20, 20], history_len=4, lstm=True, lstm_size=8)
    assert found == [
        ("state", (20, 20), "uint8"),
        ("start", (), "bool"),
        ("history", (20, 20, 4), "uint8"),
        ("lstm", (2, 8), "float32"),
    ]
    floats = signature(has_float_images=True, state_size=[20, 20], history_len=4)
    assert {each.dtype for each in floats.inputs if each.name != "start"} == {"float32"}
    zeros = zeros_of(floats, 3)
    assert {name: (each.shape, each.dtype) for name, each in zeros.items()} == {
        "history": ((3, 20, 20, 4), np.dtype(np.float32))
    }


def test_names_become_letters_digits_and_underscores():
    sizes = {"arm/left joint": [2], "action": [3], "2d": [20, 20], "allowed": [3]}
    found = inputs(state_size=sizes, action_mask="allowed", history_len={"action": 2})
    assert [name for name, _, _ in found] == [
        "arm_left_joint", "state_action", "state_2d", "allowed", "start", "history_state_action",
    ]  # fmt: skip
    assert ("allowed", (3,), "uint8") in found


def test_names_that_become_the_same_are_refused():
    with pytest.raises(ConfigurationError, match=r"cannot be told apart .* a_b, a_b"):
        signature(state_size={"a/b": [2], "a b": [2]})

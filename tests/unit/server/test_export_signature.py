"""What a written policy takes, by name, shape and type."""

import numpy as np
import pytest
from trained import CONTINUOUS, DISCRETE, algorithm_of

from relaax.errors import ConfigurationError
from relaax.learning.filters.statistics import statistics_of
from relaax.server.export.signature import signature_of, zeros_of


def signature(has_float_images=False, **section):
    section = {key: value for key, value in {**DISCRETE, **section}.items() if value is not None}
    _, config = algorithm_of("da3c", section)
    initial = np.zeros(config.network.manifest.size, np.float32)
    return signature_of(config.describe_policy(initial), has_float_images)


def inputs(**section):
    return [(each.name, each.shape, each.dtype) for each in signature(**section).inputs]


def test_a_vector_is_all_that_a_policy_without_memory_takes():
    assert inputs() == [("state", (4,), "float32")]


def test_an_observation_that_the_policy_does_not_see_is_no_input():
    sizes = {"a": [4], "masses": [2]}
    heads = {"policy": {"sees": ["a"]}, "value": {"sees": ["a", "masses"]}}
    found = inputs(state_size=sizes, network={"heads": heads}, hidden_layers=None)
    assert found == [("a", (4,), "float32")]


def test_memory_is_an_input_again_and_so_is_an_episodes_start():
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


@pytest.mark.parametrize(
    ("layers", "dtype"),
    [([{"conv2d": {"filters": 2, "kernel": 3}}], "uint8"), ([{"dense": {"units": 2}}], "float32")],
)
def test_an_image_is_bytes_where_convolutions_see_it_and_else_a_table_of_numbers(layers, dtype):
    section = {key: value for key, value in DISCRETE.items() if key != "hidden_layers"}
    _, config = algorithm_of("dqn", {**section, "state_size": [5, 5], "network": layers})
    initial = np.zeros(config.network.manifest.size, np.float32)
    (state,) = signature_of(config.describe_policy(initial)).inputs
    assert state.dtype == dtype


@pytest.mark.parametrize(("mean", "dtype"), [(100.0, "float32"), (5.4e6, "float64")])
def test_a_state_far_away_is_taken_as_exactly_as_it_is_filtered(mean, dtype):
    _, config = algorithm_of("sac", {**CONTINUOUS, "filter_states": True})
    seen = np.random.default_rng(0).normal(mean, 0.3, (50, 4))
    network = np.zeros(config.network.manifest.size, np.float32)
    vector = np.concatenate([network, statistics_of(seen)])
    (state,) = signature_of(config.describe_policy(vector)).inputs
    assert state.dtype == dtype


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

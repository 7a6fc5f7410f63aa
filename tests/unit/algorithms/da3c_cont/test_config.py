"""What da3c_cont accepts in the YAML's algorithm: section."""

from math import prod
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box
from pydantic import ValidationError

from relaax.client.gymnasium_actions import action_space_as_json
from relaax.configuration.space_check import require_spaces
from relaax.spaces import actions_differ, box

SMALLEST = {"action_size": 2, "state_size": [24]}


def test_the_defaults_are_those_of_the_seed(continuous):
    config = continuous.Config(SMALLEST)
    assert (config.settings.initial_learning_rate, config.settings.entropy_beta) == (1e-4, 0.001)
    assert config.network.lstm_size == 128
    shapes = {spec.name: spec.shape for spec in config.network.manifest.specs}
    assert shapes["dense0/kernel"] == (24, 128)
    assert shapes["policy/kernel"] == (128, 4)
    filters = config.filters()
    assert [each.width for each in filters.states.values()] == [24]
    assert filters.rewards is None


def test_sigma_is_a_parameter_where_it_is_free_of_the_state(continuous):
    config = continuous.Config({**SMALLEST, "sigma": "free", "initial_sigma": 0.5})
    (free,) = [spec for spec in config.network.manifest.specs if spec.name == "policy/free"]
    assert (free.shape, free.start) == ((2,), np.log(0.5))
    _, sigma = config.distribution.mean_and_sigma(np.log(np.full((1, 4), 0.5, np.float32)))
    np.testing.assert_allclose(sigma, 0.5, rtol=1e-6)


def test_images_are_not_filtered(continuous):
    section = {"action_size": 1, "state_size": {"camera": [84, 84], "speed": [3]}}
    assert sorted(continuous.Config(section).filters().states) == ["speed"]


@pytest.mark.parametrize(
    ("bounds", "members"),
    [
        ({"action_low": -1, "action_high": 2.5}, {"low": -1, "high": 2.5}),
        ({"action_low": [0, -1], "action_high": [1, 1]}, {"low": [0, -1], "high": 1}),
        ({"action_high": 3}, {"high": 3}),
        ({"action_low": [0, -np.inf]}, {"low": [0, None]}),
        ({}, {}),
    ],
)
def test_bounds_are_those_of_the_space(continuous, bounds, members):
    config = continuous.Config({**SMALLEST, **bounds})
    assert config.action_space() == {**box("float32", (2,)), **members}
    require_spaces(config, Path("da3c_cont"))


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize("sigma", ["state", "free"])
def test_actions_have_the_shape_of_the_environments_box(continuous, shape, sigma):
    low = np.arange(-prod(shape), 0, dtype=np.float32).reshape(shape)
    environment = Box(low, -low, shape, np.float32)
    config = continuous.Config(
        {
            "state_size": [24],
            "sigma": sigma,
            "action_size": list(shape),
            "action_low": environment.low.tolist(),
            "action_high": environment.high.tolist(),
        }
    )
    for name, bound in (("low", environment.low), ("high", environment.high)):
        np.testing.assert_array_equal(config.action_space()[name], bound)
    require_spaces(config, Path("da3c_cont"))
    assert not actions_differ(action_space_as_json(environment), config.action_space())
    flat = Box(-1, 1, (prod(shape), 1), np.float32)
    assert actions_differ(action_space_as_json(flat), config.action_space())
    outputs = np.zeros((4, config.distribution.outputs), np.float32)
    assert config.distribution.mode(outputs).shape == (4, *shape)
    assert config.network.head("policy").units == prod(shape) * (2 if sigma == "state" else 1)


def test_a_number_is_the_shape_of_a_row(continuous):
    spaces = [continuous.Config({**SMALLEST, "action_size": n}).action_space() for n in (2, [2])]
    assert spaces[0] == spaces[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"action_low": [1, 2, 3]}, r"action_low has the shape \[3\], and an action \[2\]"),
        ({"action_high": [[1, 2]]}, r"action_high has the shape \[1, 2\], and an action \[2\]"),
        ({"action_low": [[1, 2], [3]]}, "action_low has lists of different lengths"),
        ({"action_low": float("nan")}, "action_low\n.* not nan"),
        ({"action_high": [1.0, float("nan")]}, "action_high\n.* not nan"),
        ({"action_low": [True, 0]}, "action_low\n.* not True"),
        ({"action_high": True}, "action_high\n.* not True"),
        ({"action_high": "1"}, "action_high\n.* not 1"),
        ({"action_size": [2, 0]}, "action_size"),
        ({"action_size": True}, "action_size"),
        ({"initial_sigma": 0.5}, "initial_sigma needs sigma: free"),
        ({"sigma": "state", "initial_sigma": 0.5}, "initial_sigma needs sigma: free"),
        ({"action_low": 1, "action_high": 1}, "action_low must lie below action_high"),
        ({"action_high": 3.4e38}, "action_high.*no bound of a plant: leave it out"),
        ({"action_low": 1e9, "action_high": 1e9 + 1}, "float32, .* no two numbers between"),
        ({"action_scale": 0}, "action_scale: scale must be a positive number"),
        ({"action_scale": [1, 2, 3]}, r"action_scale has the shape \[3\]"),
        (
            {"action_low": -1, "action_high": 1, "action_scale": 2},
            "action_scale: no effect without a number that has no bound, or only one",
        ),
        ({"sigma": "none"}, "sigma"),
        ({"sigma": "free", "initial_sigma": 0}, "initial_sigma"),
        ({"sigma": "free", "initial_sigma": float("nan")}, "initial_sigma"),
        ({"sigma": "free", "initial_sigma": float("inf")}, "initial_sigma"),
        ({"action_mask": "legal"}, "action_mask"),
        ({"passes": 2}, "passes above 1 need policy_clip"),
    ],
)
def test_what_cannot_be_used_is_named(continuous, change, said):
    with pytest.raises(ValidationError, match=said):
        continuous.Config({**SMALLEST, **change})


def test_a_checkpoint_must_agree_on_what_is_filtered(continuous):
    plain = continuous.Config({**SMALLEST, "filter_states": False}).fingerprint()
    filtered = continuous.Config(SMALLEST).fingerprint()
    statistics = {"statistics_of_filters": "means and deviations of 48 bits"}
    assert filtered == {**plain, "filtered_states": {"": 24}, **statistics}
    assert plain["algorithm"] == "da3c_cont"


@pytest.mark.parametrize("sigma", ["state", "free"])
def test_a_checkpoint_must_agree_on_the_number_of_actions_and_on_sigma(continuous, sigma):
    section = {"action_size": [2, 2], "state_size": [24], "sigma": sigma}
    found = continuous.Config(section).fingerprint()
    assert (found["action_size"], found["sigma"]) == (4, sigma)

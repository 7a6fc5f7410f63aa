"""What da3c_cont accepts in the YAML's algorithm: section."""

import numpy as np
import pytest
from pydantic import ValidationError

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
    ("bounds", "low", "high"),
    [
        ({"action_low": -1, "action_high": 2.5}, [-1, -1], [2.5, 2.5]),
        ({"action_low": [0, -1], "action_high": [1, 1]}, [0, -1], [1, 1]),
        ({"action_high": 3}, [-np.inf, -np.inf], [3, 3]),
    ],
)
def test_bounds_are_numbers_or_a_number_for_each_action(continuous, bounds, low, high):
    found = continuous.Config({**SMALLEST, **bounds}).action_bounds()
    np.testing.assert_array_equal(found, [low, high])


def test_without_bounds_actions_are_not_cut(continuous):
    assert continuous.Config(SMALLEST).action_bounds() is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"action_low": [1, 2, 3]}, "action_low has 3 numbers, and an action has 2"),
        ({"action_low": 1, "action_high": 1}, "action_low must lie below action_high"),
        ({"sigma": "none"}, "sigma"),
        ({"initial_sigma": 0}, "initial_sigma"),
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
    assert filtered == {**plain, "filtered_states": {"": 24}}
    assert plain["algorithm"] == "da3c_cont"

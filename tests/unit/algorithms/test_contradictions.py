"""Settings that contradict one another: refused before anything starts, or said to be doubtful."""

import pytest
from pydantic import ValidationError

from relaax.server.common.algorithm_loader import load_algorithm
from relaax.server.common.algorithm_location import locate_algorithm

NUMBERS = {"action_size": 1, "action_low": -1, "action_high": 1, "state_size": [3]}
CHOICES = {"action_size": 2, "state_size": [3]}

#: The algorithm, its settings, and what is said of them.
REFUSED = {
    "learning begins at the end": (
        "sac", NUMBERS, {"max_global_step": 600, "learning_starts": 1000},
        "learning_starts: 1000 steps are not below max_global_step, 600",
    ),
    "learning begins after the end": (
        "dqn", CHOICES, {"max_global_step": 1000}, "learning_starts: 1000 steps are not below",
    ),
    "an entropy that no policy has": (
        "sac", NUMBERS, {"target_entropy": 0.8}, "target_entropy: 0.8 is not reached by any policy",
    ),
    "a batch is longer than the training": (
        "ppo", CHOICES, {"max_global_step": 1000, "rollouts_per_batch": 8, "episode_len": 128},
        "rollouts_per_batch: 8 rollouts of episode_len, 128, are more steps than max_global_step",
    ),
    "more minibatches than steps": (
        "ppo", CHOICES, {"rollouts_per_batch": 1, "episode_len": 4, "minibatches": 5},
        "minibatches: a batch has 4 steps, which are not divided into 5",
    ),
    "an update is longer than the training": (
        "da3c", CHOICES, {"max_global_step": 99, "least_rollouts_per_update": 20},
        "least_rollouts_per_update: 20 rollouts of episode_len, 5, are more steps than",
    ),
    "an update has more rollouts than it may have": (
        "da3c", CHOICES, {"least_rollouts_per_update": 64, "rollouts_per_update": 32},
        "least_rollouts_per_update 64 is above rollouts_per_update 32",
    ),
    "several passes without a correction": (
        "da3c", CHOICES, {"passes": 2}, "passes above 1 need policy_clip",
    ),
    "bounds in the wrong order": (
        "ddpg", NUMBERS, {"action_low": 2}, "action_low must lie below action_high",
    ),
    "a scale of actions that have bounds": (
        "sac", NUMBERS, {"action_scale": 3.0}, "action_scale: no effect without",
    ),
    "a spread of actions that depends on the state": (
        "da3c_cont", NUMBERS, {"initial_sigma": 0.5}, "initial_sigma needs sigma: free",
    ),
    "layers in two places": (
        "sac", NUMBERS, {"network": [], "hidden_layers": [64]}, "exclude each other",
    ),
}  # fmt: skip

DOUBTFUL = {
    "no action is the policy's": (
        "sac", NUMBERS, {"max_global_step": 2000, "random_steps": 2000},
        "random_steps: 2,000 steps are not below max_global_step, 2,000",
    ),
    "epsilon does not get to its end": (
        "dqn", CHOICES, {"max_global_step": 5000, "exploration": {"steps": 1e4}},
        "exploration: 10,000 steps are more than max_global_step, 5,000",
    ),
    "the target never moves": (
        "dqn", CHOICES, {"max_global_step": 1900, "exploration": {"steps": 100.0}},
        "target_every: 500 updates are more than the 450 of the whole training",
    ),
    "beta does not get to 1": (
        "sac", NUMBERS, {"max_global_step": 50_000, "prioritized": True},
        "prioritized: beta_updates: 100,000 updates are more than the 49,900",
    ),
    "batches are given up too early": (
        "ppo", CHOICES, {"learning_rate_schedule": "kl", "kl_stop": 0.01},
        "kl_stop: 0.01 lies below kl_target, 0.015",
    ),
}  # fmt: skip


def config_of(name, settings, tmp_path):
    directory = locate_algorithm({"name": name}, tmp_path / "my.yaml")
    return load_algorithm(directory).Config(settings)


@pytest.mark.parametrize("case", REFUSED)
def test_settings_that_contradict_one_another_are_refused(case, tmp_path):
    name, basic, settings, message = REFUSED[case]
    config_of(name, basic, tmp_path)
    with pytest.raises(ValidationError, match=message.replace("(", r"\(")):
        config_of(name, {**basic, **settings}, tmp_path)


@pytest.mark.parametrize("case", DOUBTFUL)
def test_settings_that_are_hardly_meant_are_said_to_be_doubtful(case, tmp_path):
    name, basic, settings, message = DOUBTFUL[case]
    assert list(config_of(name, basic, tmp_path).doubts()) == []
    (doubt, *_) = config_of(name, {**basic, **settings}, tmp_path).doubts()
    assert doubt.startswith(message)

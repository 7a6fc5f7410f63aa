"""Settings that contradict one another: refused before anything starts, or said to be doubtful."""

import pytest

from relaax.configuration.algorithm_loader import load_algorithm
from relaax.configuration.named_files import locate_algorithm

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
    "no update is made": (
        "sac", NUMBERS, {"max_global_step": 1e4, "updates_per_step": 1e-5},
        "updates_per_step: 1e-05 makes 0.099 updates in the 9,900 steps from learning_starts",
    ),
    "no step is followed by enough others": (
        "sac", NUMBERS, {"max_global_step": 600, "n_step": 700},
        "n_step: 700 steps are not below max_global_step, 600",
    ),
    "the policy's turn does not come": (
        "ddpg", NUMBERS, {"max_global_step": 1000, "policy_delay": 1000},
        "policy_delay: 1000 updates are more than the 900 of the whole training",
    ),
    "an entropy that no policy has": (
        "sac", NUMBERS, {"target_entropy": 0.8}, "target_entropy: 0.8 is not reached by any policy",
    ),
    "a batch is longer than the training": (
        "ppo", CHOICES, {"max_global_step": 1000, "rollouts_per_batch": 8, "episode_len": 128},
        "rollouts_per_batch: 8 rollouts of episode_len, 128, are more steps than max_global_step",
    ),
    "workers that learn draw from no table": (
        "da3c", CHOICES, {"max_policy_lag": 1},
        "max_policy_lag: no effect without learner: process",
    ),
    "nobody waits for a learner in a process": (
        "da3c", CHOICES, {"learner": "process", "wait_for_learning": "never"},
        "wait_for_learning: no effect without learner: worker",
    ),
    "workers do not move the learning rate": (
        "ppo", CHOICES, {"learner": "worker", "learning_rate_schedule": "kl"},
        "learning_rate_schedule: kl needs one learner in a process: with learner: worker",
    ),
    "learners that share gradients do not move it either": (
        "ppo", CHOICES, {"learners": {"count": 2}, "learning_rate_schedule": "kl"},
        "learning_rate_schedule: kl needs one learner in a process: with learners",
    ),
    "workers that learn are no learners": (
        "da3c", CHOICES, {"learners": {"count": 2}},
        "learners: no effect without learner: process",
    ),
    "more minibatches than steps": (
        "ppo", CHOICES, {"rollouts_per_batch": 1, "episode_len": 4, "minibatches": 5},
        "minibatches: a batch has 4 steps, which are not divided into 5",
    ),
    "an update is longer than the training": (
        "da3c", CHOICES, {"max_global_step": 99, "least_rollouts_per_update": 20},
        "least_rollouts_per_update: 20 rollouts of episode_len, 5, are more steps than",
    ),
    "a rollout is longer than the training": (
        "da3c", CHOICES,
        {"max_global_step": 100, "episode_len": 200, "wait_for_learning": "always"},
        "episode_len: the 200 steps of one rollout are more steps than max_global_step, 100",
    ),
    "more minibatches than rollouts": (
        "da3c", CHOICES, {"rollouts_per_update": 8, "minibatches": 9},
        "minibatches: an update has at most 8 rollouts",
    ),
    "more minibatches than rollouts of a recurrent layer": (
        "ppo", CHOICES, {"lstm": True, "rollouts_per_batch": 8, "minibatches": 64},
        "minibatches: a batch has 8 rollouts .*with a recurrent layer are not divided into 64",
    ),
    "more minibatches than rollouts of a recurrent network": (
        "ppo", CHOICES, {"network": [{"lstm": 4}], "rollouts_per_batch": 4},
        "minibatches: a batch has 4 rollouts .*with a recurrent layer are not divided into 8",
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
    "hardly an action is the policy's": (
        "sac", NUMBERS, {"max_global_step": 2000, "random_steps": 1900},
        "random_steps: 1,900 steps are more than nine tenths of max_global_step, 2,000",
    ),
    "learning begins near the end": (
        "sac", NUMBERS, {"max_global_step": 600, "learning_starts": 599},
        "learning_starts: 599 steps leave 1 of max_global_step, 600, to learn in",
    ),
    "learning begins less than a batch before the end": (
        "sac", NUMBERS, {"max_global_step": 1200, "learning_starts": 1000},
        "learning_starts: 1,000 steps leave 200 of max_global_step, 1,200, to learn in",
    ),
    "few steps are followed by enough others": (
        "dqn", CHOICES, {"max_global_step": 2000, "n_step": 1500},
        "n_step: 1,500 steps are more than a tenth of max_global_step, 2,000",
    ),
    "a batch is a large part of the training": (
        "ppo", CHOICES, {"max_global_step": 1500},
        "rollouts_per_batch: 8 rollouts of episode_len, 128, are more than a tenth of",
    ),
    "a rollout is a large part of the training": (
        "da3c", CHOICES, {"max_global_step": 1000, "episode_len": 200},
        "episode_len: the 200 steps of one rollout are more than a tenth of max_global_step",
    ),
    "the target of ddpg never moves": (
        "ddpg", NUMBERS, {"max_global_step": 2000, "target_every": 5000},
        "target_every: 5,000 updates are more than the 1,900 of the whole training",
    ),
    "a learning rate begins beyond its range": (
        "ppo", CHOICES, {"learning_rate_schedule": "kl", "learning_rate_range": [1e-5, 1e-4]},
        "initial_learning_rate: 0.0003 is not within learning_rate_range, 1e-05 to 0.0001",
    ),
    "a clip begins beyond its range": (
        "ppo", CHOICES, {"policy_clip_range": [0.3, 0.5]},
        "policy_clip: 0.2 is not within policy_clip_range, 0.3 to 0.5",
    ),
    "a penalty begins beyond its range": (
        "ppo", CHOICES, {"objective": "kl_penalty", "kl_penalty": 50},
        "kl_penalty: 50 is not within kl_penalty_range, 0.0285714 to 35",
    ),
    "epsilon begins to fall too late": (
        "dqn", CHOICES, {"max_global_step": 11_000, "exploration": {"begin": 5000}},
        "exploration: 10,000 steps from 5,000 on are more than max_global_step, 11,000",
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
    with pytest.raises(ValueError, match=message):
        config_of(name, {**basic, **settings}, tmp_path)


@pytest.mark.parametrize("case", DOUBTFUL)
def test_settings_that_are_hardly_meant_are_said_to_be_doubtful(case, tmp_path):
    name, basic, settings, message = DOUBTFUL[case]
    assert list(config_of(name, basic, tmp_path).doubts()) == []
    (doubt, *_) = config_of(name, {**basic, **settings}, tmp_path).doubts()
    assert doubt.startswith(message)

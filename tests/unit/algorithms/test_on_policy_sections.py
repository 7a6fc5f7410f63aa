"""Sections of all algorithms that learn from new rollouts: intrinsic rewards and burn-ins."""

from dataclasses import replace

import numpy as np
import pytest
from processes import REPOSITORY
from rollout_samples import random_rollouts

from relaax.configuration.algorithm_loader import load_algorithm

STEPS, COUNT = 5, 4

DISCRETE = {
    "state_size": [4], "action_size": 3, "episode_len": STEPS, "hidden_layers": [8], "seed": 1,
}  # fmt: skip
CONTINUOUS = {**DISCRETE, "action_size": 2, "action_low": -1, "action_high": 1}
SMALL_BATCH = {"rollouts_per_batch": COUNT, "minibatches": 2}
SMALL_VALUES = {"rollouts_per_batch": COUNT, "value_minibatches": 2}

#: By algorithm: its section.
SECTIONS = {
    "acer": {**DISCRETE, "rollouts_per_update": COUNT},
    "acer of numbers": {**CONTINUOUS, "continuous": True, "rollouts_per_update": COUNT},
    "da3c": {**DISCRETE, "learner": "process"},
    "da3c_cont": {**CONTINUOUS, "learner": "process", "lstm": False},
    "impala": DISCRETE,
    "ppo": {**DISCRETE, **SMALL_BATCH},
    "ppo of numbers": {**CONTINUOUS, "continuous": True, **SMALL_BATCH},
    "trpo": {**DISCRETE, **SMALL_VALUES},
    "trpo of numbers": {**CONTINUOUS, "continuous": True, **SMALL_VALUES},
}


def rollouts_for(config, count):
    """Rollouts with all that the algorithm records of its choices."""
    columns = config.columns()
    rollouts = random_rollouts(
        config.network, count=count, steps=STEPS, dtype=columns.observation_dtype
    )
    shape = (STEPS, count)
    if columns.action_shape:
        actions = np.random.default_rng(5).normal(size=(*shape, *columns.action_shape))
        rollouts = replace(rollouts, actions=actions.astype(columns.action_dtype))
    extras = {
        name: np.zeros((*shape, *column.shape), column.dtype)
        for name, column in columns.extras.items()
    }
    return replace(rollouts, extras=extras)


@pytest.mark.parametrize("name", ["acer of numbers", "da3c", "ppo", "trpo"])
def test_a_burn_in_is_refused_without_a_recurrent_layer(name):
    algorithm = load_algorithm(REPOSITORY / "algorithms" / name.partition(" ")[0]).module
    with pytest.raises(ValueError, match="burn_in: no effect without a recurrent layer"):
        algorithm.Config({**SECTIONS[name], "burn_in": 2})


@pytest.mark.parametrize("part", ["icm", "rnd"])
@pytest.mark.parametrize("name", SECTIONS)
def test_steps_of_the_learner_pay_for_new_states(name, part):
    algorithm = load_algorithm(REPOSITORY / "algorithms" / name.partition(" ")[0]).module
    config = algorithm.Config({**SECTIONS[name], "intrinsic": {"name": part}})
    learner = algorithm.make_learner(config, 3)
    batches = {
        table: rollouts_for(config, each.batch_size) for table, each in learner.inputs.items()
    }
    for _ in range(2):  # then there are statistics of observations and of returns
        list(learner.steps(batches))
    for step in learner.steps(batches):
        assert step.terms["intrinsic reward"] > 0
    filters = config.filters()
    filters.use(filters.separated(learner.values()["default"])[1])
    assert np.size(filters.others["intrinsic/"].scale.factor) == 4

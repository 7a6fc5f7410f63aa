"""Several choices at once, and bits, are learnt as one choice is: in one process."""

import itertools

import numpy as np
import pytest

from relaax.algorithm_base import NullMetrics, NullSaver

pytestmark = pytest.mark.learning

STEPS = 6000
STATES = np.eye(3, dtype=np.float32)


@pytest.mark.parametrize(
    ("keys", "right"),
    [
        ({"action_size": [3, 2]}, [[0, 1], [1, 0], [2, 1]]),
        ({"action_bits": [2, 2]}, [[[0, 1], [1, 1]], [[1, 0], [0, 0]], [[1, 1], [0, 1]]]),
    ],
    ids=["choices", "bits"],
)
def test_every_number_of_an_action_is_learnt(da3c, capsys, keys, right):
    """Each number that is right for the state earns its part; guessing earns a half at most."""
    config = da3c.Config(
        {
            "state_size": [3], "initial_learning_rate": 3e-3, "rewards_gamma": 0.1, "seed": 1,
            "RMSProp": {"epsilon": 1e-6}, **keys,
        }
    )  # fmt: skip
    parameter_server = da3c.ParameterServer(config, NullSaver(), NullMetrics())
    agent = da3c.Agent(config, parameter_server.bridge())
    states = np.random.default_rng(0).integers(0, len(STATES), STEPS + 1)
    rewards = []
    action = agent.act(STATES[states[0]])
    for state, following in itertools.pairwise(states):
        rewards.append(float(np.mean(np.equal(action, right[state]))))
        action = agent.reward_and_act(rewards[-1], STATES[following])
    reached = np.mean(rewards[-1000:])
    with capsys.disabled():
        print(
            f"\n{config.action_space()}: {reached:.3f} of the last 1000 actions' numbers were right"
        )
    assert np.mean(rewards[:200]) < 0.75
    assert reached > 0.9

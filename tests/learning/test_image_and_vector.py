"""An image and a vector train together, in one process and through real servers."""

import itertools
from types import ModuleType

import numpy as np
import pytest
from processes import REPOSITORY, Training
from senses_environment import KEYS, picture
from senses_environment import STEPS as STEPS_OF_EPISODE
from worker_modes import SEVERAL

from relaax.algorithm_base import NullMetrics, NullSaver

pytestmark = pytest.mark.learning

STEPS = 6000

ENTROPY_BETA = 0.5

SECTION = {
    "action_size": 2,
    "state_size": {"camera": [20, 20], "speed": [1]},
    "network": {
        "encoders": {
            "camera": [{"conv2d": {"filters": 8, "kernel": 5, "stride": 3}}, {"dense": 32}],
            "speed": [{"dense": {"units": 16, "activation": "tanh"}}],
        },
        "layers": [{"dense": 32}],
    },
    "initialization": "orthogonal", "initial_learning_rate": 1e-3, "rewards_gamma": 0.1,
    "episode_len": 20, "seed": 1, "RMSProp": {"epsilon": 1e-6},
}  # fmt: skip


def state_of(is_right: bool, is_fast: bool) -> dict[str, np.ndarray]:
    """A bright bar at the left or at the right, and a speed."""
    return {"camera": picture(is_right), "speed": np.array([1.0 if is_fast else -1.0], np.float32)}


def test_the_right_action_needs_the_image_and_the_vector(
    da3c: ModuleType, capsys: pytest.CaptureFixture[str]
):
    """Action 1 is right if the bar is at the right or the speed is high, and not if both are.

    One of both alone says nothing: guessing and half of the observation earn a half. The policy
    with the largest mean of reward + entropy_beta * entropy is softmax(reward / entropy_beta): it
    is right in 0.88 of the steps, and one that is rewarded for certainty in all or in a half.
    """
    config = da3c.Config({**SECTION, "entropy_beta": ENTROPY_BETA})
    parameter_server = da3c.ParameterServer(config, NullSaver(), NullMetrics())
    agent = da3c.Agent(config, parameter_server.bridge())
    drawn = np.random.default_rng(0).integers(0, 2, (STEPS + 1, 2)).astype(bool)
    rewards = []
    action = agent.act(state_of(*drawn[0]))
    for (is_right, is_fast), following in itertools.pairwise(drawn):
        rewards.append(float(action == (is_right != is_fast)))
        action = agent.reward_and_act(rewards[-1], state_of(*following))
    reached = np.mean(rewards[-1000:])
    with capsys.disabled():
        print(f"\nimage and vector: {reached:.3f} of the last 1000 actions were right")
    assert reached == pytest.approx(1 / (1 + np.exp(-1 / ENTROPY_BETA)), abs=0.04)


@SEVERAL
def test_nested_observations_with_a_mask_are_learnt_from_through_real_servers(training: Training):
    """The environment ends with an error when it is given an action that it has forbidden."""
    encoders = SECTION["network"]["encoders"]
    training.configure(
        {
            **SECTION,
            **KEYS,
            "path": str(REPOSITORY / "algorithms" / "da3c"),
            "network": {
                "encoders": {"camera": encoders["camera"], "arm": {"speed": encoders["speed"]}},
                "layers": [{"dense": 32}],
            },
            "max_global_step": 200_000,
        },
        {"goal-return": 0.9 * STEPS_OF_EPISODE},
    )
    server = training.start_parameter_server()
    training.start_rlx_server()
    training.start_environments(8, "--per-connection", "4", env="senses_environment:Senses-v0")
    assert server.wait(120) == 0
    server.says("has reached its goal")

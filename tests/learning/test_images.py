"""The image network learns to see, in one process and without the network between."""

import itertools
from types import ModuleType

import numpy as np
import pytest

from relaax.algorithm_base import NullMetrics, NullSaver

pytestmark = pytest.mark.learning

STEPS = 6000
POSITIONS = 3


def picture(position: int) -> np.ndarray:
    """A grey picture with a bright bar at the left, in the middle or at the right."""
    pixels = np.full((84, 84), 80, np.uint8)
    pixels[20:60, 28 * position + 8 : 28 * position + 16] = 200
    return pixels


def test_the_image_network_learns_which_action_belongs_to_a_picture(
    da3c: ModuleType, capsys: pytest.CaptureFixture[str]
):
    """Guessing earns a third; the pictures of the history before say nothing about the next."""
    config = da3c.Config(
        {
            "action_size": POSITIONS, "state_size": [84, 84], "history_len": 4, "episode_len": 20,
            "initial_learning_rate": 2e-4, "rewards_gamma": 0.1, "seed": 1,
            "RMSProp": {"epsilon": 1e-6},
        }
    )  # fmt: skip
    parameter_server = da3c.ParameterServer(config, NullSaver(), NullMetrics())
    agent = da3c.Agent(config, parameter_server.bridge())
    generator = np.random.default_rng(0)
    positions = generator.integers(0, POSITIONS, STEPS + 1)
    rewards = []
    action = agent.act(picture(positions[0]))
    for position, following in itertools.pairwise(positions):
        rewards.append(float(action == position))
        action = agent.reward_and_act(rewards[-1], picture(following))
    reached = np.mean(rewards[-1000:])
    with capsys.disabled():
        print(f"\npictures: {reached:.3f} of the last 1000 actions were right after {STEPS} steps")
    assert reached > 0.9

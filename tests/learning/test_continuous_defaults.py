"""da3c_cont as the seed has it, with its LSTM and a sigma for each state, learns a short task."""

import numpy as np
import pytest
from learning_parts import Driven, Stored, report
from processes import REPOSITORY

from relaax.algorithm_base import NullSaver
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.steps import FINAL, START, TRUNCATED

pytestmark = [pytest.mark.learning, pytest.mark.timeout(180)]

ENVIRONMENTS, EPISODE, EPISODES = 32, 8, 800

#: All else is as by default. The learning rate is larger, and annealed within the short training.
SECTION = {
    "action_size": 1, "state_size": [2], "initial_learning_rate": 3e-4, "seed": 3,
    "max_global_step": EPISODES * EPISODE * ENVIRONMENTS,
}  # fmt: skip

#: Points that stay where they are have a mean return of -5.3, those of a sure policy -0.4.
GOAL = -2.5


class Points:
    """Points between -1 and 1, which are to be moved onto targets, by half a unit at most."""

    def __init__(self):
        self._random = np.random.default_rng(11)
        self.restart()

    def restart(self):
        self._points, self._targets = self._random.uniform(-1, 1, (2, ENVIRONMENTS))
        return self.states()

    def states(self):
        return np.stack([self._points, self._targets], axis=1).astype(np.float32)

    def move(self, actions):
        """Return rewards: minus the distances."""
        moved = self._points + np.clip(actions[:, 0], -0.5, 0.5)
        self._points = np.clip(moved, -1, 1)
        return -np.abs(self._points - self._targets)


def episode(agent, slots, points):
    """Play one episode in all environments; return the mean of their returns."""
    count, states = len(slots), points.restart()
    actions = agent.act(report(slots, [START] * count, [0.0] * count, states))
    total = 0.0
    for _ in range(EPISODE - 1):
        rewards = points.move(actions)
        total += rewards.mean()
        actions = agent.act(report(slots, [0] * count, rewards, points.states()))
    rewards = points.move(actions)
    agent.act(report(slots, [TRUNCATED | FINAL] * count, rewards, [], points.states()))
    return total + rewards.mean()


def test_the_defaults_of_the_seed_learn_to_move_points_onto_targets():
    continuous = load_algorithm(REPOSITORY / "algorithms" / "da3c_cont").module
    config = continuous.Config(SECTION)
    settings = config.settings
    assert (settings.lstm, settings.sigma, settings.dense_units) == (True, "state", (128,))
    server = continuous.ParameterServer(config, NullSaver(), Stored())
    agent = Driven(continuous.make_batch_agent(config, server.bridge(), 0, False))
    slots, points = agent.open(ENVIRONMENTS), Points()
    returns = [episode(agent, slots, points) for _ in range(EPISODES)]
    assert np.mean(returns[:10]) < GOAL - 1
    assert np.mean(returns[-50:]) > GOAL

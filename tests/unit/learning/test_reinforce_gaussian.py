"""A second algorithm, built from the library: REINFORCE with continuous actions, in one process."""

from pathlib import Path

import numpy as np
import pytest
from learning_parts import Driven, Stored
from points import GOAL, STANDING_STILL, STEPS, Points

from relaax.algorithm_base import NullSaver
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.steps import START, TERMINATED, Steps

pytestmark = pytest.mark.usefixtures("tensorflow")

DIRECTORY = Path(__file__).parents[2] / "learning" / "reinforce_gaussian"
SECTION = {"state_size": 2, "action_size": 2, "episode_len": STEPS, "seed": 3}


@pytest.fixture(name="algorithm", scope="module")
def _algorithm():
    return load_algorithm(DIRECTORY)


@pytest.fixture(name="parameter_server")
def _parameter_server(algorithm):
    return algorithm.ParameterServer(algorithm.Config(SECTION), NullSaver(), Stored())


def test_its_folder_is_small():
    lines = sum(len(path.read_text().splitlines()) for path in DIRECTORY.glob("*.py"))
    assert lines < 150


def test_many_environments_learn_continuous_actions(algorithm, parameter_server):
    config = algorithm.Config(SECTION)
    agent = Driven(algorithm.make_batch_agent(config, parameter_server.bridge(), 1, False))
    points, slots = Points(16), agent.open(16)
    states, flags = points.start(), np.full(16, START, np.uint8)
    rewards = np.zeros(16)
    for _ in range(300 * STEPS):
        actions = agent.act(Steps(slots, flags, rewards, states, np.zeros((0, 2), np.float32)))
        rewards, states, is_end = points.step(actions)
        flags = np.where(is_end, TERMINATED | START, 0).astype(np.uint8)
    agent.close()
    assert np.mean(points.returns[:5]) < STANDING_STILL
    assert np.mean(points.returns[-50:]) > GOAL
    assert parameter_server.global_t() == 16 * (300 * STEPS - STEPS)


def test_an_agent_of_one_environment_returns_arrays(algorithm, parameter_server):
    agent = algorithm.make_agent(algorithm.Config(SECTION), parameter_server.bridge(), 1)
    action = agent.act([0.1, 0.2])
    assert (action.shape, action.dtype) == ((2,), np.float32)
    for _ in range(STEPS - 1):
        agent.reward_and_act(-1.0, [0.1, 0.2])
    agent.reward_and_reset(-1.0)
    agent.act([0.3, 0.4])
    assert parameter_server.global_t() == STEPS


def test_the_graphs_log_likelihood_is_the_one_of_acting(algorithm):
    from relaax.learning.distributions.graph_tf import graph_of

    random = np.random.default_rng(0)
    outputs = random.normal(size=(5, 4)).astype(np.float32)
    distribution = algorithm.Config(SECTION).distribution
    actions = distribution.choose(outputs, distribution.noise(random, 5))
    expected = distribution.log_likelihood(outputs, actions)
    found = graph_of(distribution).log_likelihood(outputs, actions)
    np.testing.assert_allclose(found, expected, rtol=1e-4)

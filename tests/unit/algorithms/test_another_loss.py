"""The loss that docs/algorithms.md puts in the place of DA3C's."""

import shutil

import numpy as np
import pytest
from algorithms_page import another_loss
from learning_parts import Stored
from processes import REPOSITORY
from rollout_samples import random_rollouts

from relaax.algorithm_base import NullSaver
from relaax.learning.actor_critic import make_gradients
from relaax.learning.networks import initial_parameters
from relaax.server.common.algorithm_loader import load_algorithm

SECTION = {"action_size": 3, "state_size": [4], "hidden_layers": [6], "seed": 7}


@pytest.fixture(name="mine")
def _mine(tmp_path, da3c):
    """The folder of DA3C with the files of the page, loaded as the servers load it."""
    da3c.prepare_to_fork()
    directory = tmp_path / "mine"
    shutil.copytree(REPOSITORY / "algorithms" / "da3c", directory)
    for name, text in another_loss().items():
        (directory / name).write_text(text)
    return load_algorithm(directory)


def test_it_is_da3cs_with_one_more_term(mine):
    from relaax.learning.networks.parameters_tf import ParameterTensors

    config = mine.Config(SECTION)
    vector = initial_parameters(config.network.manifest, "orthogonal", 7)
    parameters = ParameterTensors(config.network).unpack(vector)
    rollouts = random_rollouts(config.network)
    plain = make_gradients(config).gradient(parameters, rollouts)
    priced = make_gradients(config, mine.module.objective_of).gradient(parameters, rollouts)
    assert priced.terms["price"] > 0
    assert {**priced.terms, **plain.terms} == pytest.approx(priced.terms)
    assert not np.array_equal(priced.vector, plain.vector)


def test_agents_of_one_and_of_many_environments_learn_with_it(mine):
    metrics = Stored()
    server = mine.ParameterServer(mine.Config(SECTION), NullSaver(), metrics)
    agent = mine.make_agent(mine.Config(SECTION), server.bridge(), 1)
    agent.act([0.1, 0.2, 0.3, 0.4])
    for _ in range(11):
        agent.reward_and_act(1.0, [0.1, 0.2, 0.3, 0.4])
    agent.close()
    assert server.global_t() == 10
    assert "learner/price" in {name for name, *_ in metrics.values}
    assert mine.make_batch_agent(mine.Config(SECTION), server.bridge(), 1, False).learns

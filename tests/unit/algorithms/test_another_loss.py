"""The loss that docs/your_algorithm.md puts in the place of DA3C's."""

import dataclasses
import shutil

import numpy as np
import pytest
from actor_critic_parts import gradients_of
from learning_parts import Driven, Stored
from processes import REPOSITORY
from rollout_samples import random_rollouts
from your_algorithm_page import another_loss

from relaax.algorithm_base import NullSaver
from relaax.assembly import bundled
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.networks import initial_parameters
from relaax.steps import START, Steps

SECTION = {"action_size": 3, "state_size": [4], "hidden_layers": [6], "lstm": False, "seed": 7}
STATE = [0.1, 0.2, 0.3, 0.4]
NONE = np.zeros((0, 4), np.float32)


@pytest.fixture(name="mine", params=["da3c", "da3c_cont"])
def _mine(request, tmp_path, da3c):
    """One of the two folders with the files of the page, loaded as the servers load it."""
    da3c.prepare_to_fork()
    directory = tmp_path / "mine"
    shutil.copytree(REPOSITORY / "algorithms" / request.param, directory)
    for name, text in another_loss().items():
        (directory / name).write_text(text)
    return load_algorithm(directory)


def test_it_is_da3cs_with_one_more_term(mine):
    from relaax.learning.networks.parameters_tf import ParameterTensors

    config = mine.Config(SECTION)
    vector = initial_parameters(config.network.manifest, "orthogonal", 7)
    parameters = ParameterTensors(config.network).unpack(vector)
    rollouts = random_rollouts(config.network)
    shape = (*rollouts.rewards.shape, *config.distribution.action_shape)
    rollouts = dataclasses.replace(
        rollouts, actions=np.ones(shape, config.distribution.action_dtype)
    )
    plain = gradients_of(bundled("da3c"), config).gradient(parameters, rollouts)
    priced = gradients_of(mine.module, config).gradient(parameters, rollouts)
    assert priced.terms["price"] > 0
    assert {**priced.terms, **plain.terms} == pytest.approx(priced.terms)
    assert not np.array_equal(priced.vector, plain.vector)


def test_agents_of_one_and_of_many_environments_learn_with_it(mine):
    config, of_one, of_many = mine.Config(SECTION), Stored(), Stored()
    server = mine.ParameterServer(config, NullSaver(), of_one)
    agent = mine.make_agent(config, server.bridge(), 1)
    agent.act(STATE)
    for _ in range(11):
        agent.reward_and_act(1.0, STATE)
    agent.close()
    assert server.global_t() == 10
    server = mine.ParameterServer(config, NullSaver(), of_many)
    driven = Driven(mine.make_batch_agent(config, server.bridge(), 1, False))
    slots = driven.open(2)
    for flag in (START, 0, 0, 0, 0, 0):
        steps = Steps(slots, np.full(2, flag, np.uint8), np.zeros(2), np.float32([STATE] * 2), NONE)
        driven.act(steps)
    driven.close()
    assert server.global_t() == 10
    for stored in (of_one, of_many):
        assert "learner/price" in {name for name, _ in stored.values}

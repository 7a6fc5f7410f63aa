"""Choosing with networks of every kind, against an independent computation in numpy."""

from types import SimpleNamespace

import numpy as np
import pytest
from learning_parts import NETWORKS
from numpy_network import NumpyNetwork
from rollout_samples import random_rollouts

from relaax.learning.distributions import Categorical
from relaax.learning.distributions.categorical_tf import GraphCategorical
from relaax.learning.networks import LSTM, Convolution, Dense, Head, Network, initial_parameters
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.networks.parameters_tf import ParameterTensors
from relaax.learning.networks.policy_tf import GraphPolicy, policy_of

pytestmark = pytest.mark.usefixtures("tensorflow")


def make_case(name):
    """A network, its parameters and its numpy twin; three environments."""
    network, dtype = NETWORKS[name]
    vector = initial_parameters(network.manifest, "uniform", 7)
    tensors = ParameterTensors(network)
    rollouts = random_rollouts(network, dtype=dtype)
    return SimpleNamespace(
        name=name,
        tensors=tensors,
        parameters=tensors.unpack(vector),
        policy=policy_of(network, tensors, Categorical(3), GraphCategorical()),
        graph=GraphPolicy(network, tensors, GraphCategorical()),
        twin=NumpyNetwork(network, network.manifest.unpack(vector)),
        observations=rollouts.observations[0],
        state=rollouts.recurrent_state,
    )


@pytest.fixture(name="case", params=NETWORKS)
def _case(request):
    return make_case(request.param)


@pytest.mark.parametrize("way", ["policy", "graph"])
def test_choosing_agrees_with_numpy(case, way):
    """Three environments, which a graph pads to four."""
    policy = getattr(case, way)
    for noise in np.random.default_rng(5).gumbel(size=(20, 3, 3)).astype(np.float32):
        choice = policy.choose(case.parameters, case.observations, case.state, noise)
        for row in range(3):
            outputs, after = case.twin.forward(
                case.observations[row : row + 1], case.state[:, row : row + 1], [1]
            )
            logits = outputs["policy"][0]
            action = np.argmax(logits + noise[row])
            log_probability = logits[action] - np.log(np.exp(logits).sum())
            assert choice.actions[row] == action
            np.testing.assert_allclose(choice.log_probabilities[row], log_probability, rtol=1e-4)
            np.testing.assert_allclose(
                choice.recurrent_state[:, row : row + 1], after, rtol=1e-4, atol=1e-5
            )


def test_dense_layers_alone_are_evaluated_in_numpy(case):
    assert isinstance(case.policy, NumpyPolicy if case.name == "dense" else GraphPolicy)


def test_bytes_are_scaled_to_one():
    case = make_case("dense")
    noise = np.zeros((3, 3), np.float32)
    of_bytes = np.full((3, 4), 255, np.uint8)
    of_ones = np.ones((3, 4), np.float32)
    found = [
        case.policy.choose(case.parameters, observations, case.state, noise).log_probabilities
        for observations in (of_bytes, of_ones)
    ]
    np.testing.assert_allclose(*found)


def test_parameters_stand_in_the_order_of_the_layers():
    network = Network.of(
        (20, 20, 3),
        (Convolution(16, 8, 4), Dense(7), LSTM(5)),
        (Head("policy", 2), Head("value", 1)),
    )
    shapes = {spec.name: spec.shape for spec in network.manifest.specs}
    assert shapes == {
        "conv0/kernel": (8, 8, 3, 16),
        "conv0/bias": (16,),
        "dense0/kernel": (4 * 4 * 16, 7),
        "dense0/bias": (7,),
        "lstm/kernel": (7 + 5, 20),
        "lstm/bias": (20,),
        "policy/kernel": (5, 2),
        "policy/bias": (2,),
        "value/kernel": (5, 1),
        "value/bias": (1,),
    }
    assert list(shapes)[:2] == ["conv0/kernel", "conv0/bias"]


@pytest.mark.parametrize("way", ["policy", "graph"])
def test_a_batch_that_is_padded_already_is_chosen_for_like_one_that_is_not(case, way):
    policy = getattr(case, way)
    noise = np.random.default_rng(5).gumbel(size=(3, 3)).astype(np.float32)
    rows = policy.batch_size(3)
    padded = np.zeros((rows, *case.observations.shape[1:]), case.observations.dtype)
    padded[:3] = case.observations
    choices = [
        policy.choose(case.parameters, observations, case.state, noise)
        for observations in (case.observations, padded)
    ]
    for name in ("actions", "log_probabilities", "recurrent_state"):
        np.testing.assert_array_equal(*(getattr(choice, name) for choice in choices))
    assert [len(choice.actions) for choice in choices] == [3, 3]

"""Actions that are drawn evenly at first."""

import numpy as np
import pytest

from relaax.learning.distributions import Deterministic, SquashedGaussian
from relaax.learning.exploration.noise import UniformAtFirst
from relaax.learning.networks import POLICY, Dense, Head, Network, initial_parameters
from relaax.learning.networks.manifest import NetworkParameters
from relaax.learning.networks.numpy_policy import NumpyPolicy

COUNT = 20_000
STATES, NO_STATE = np.ones((COUNT, 3), np.float32), np.zeros((2, COUNT, 0), np.float32)


@pytest.mark.parametrize("kind", [Deterministic, SquashedGaussian])
def test_actions_are_drawn_evenly_at_first_and_by_the_policy_after_that(kind):
    actions = kind((2, 1))
    network = Network.of((3,), [Dense(4)], (Head(POLICY, actions.outputs),))
    vector = initial_parameters(network.manifest, "uniform", 3)
    parameters = NetworkParameters(network.manifest.unpack(vector))
    policy, step = NumpyPolicy(network, actions, extras=()), 0
    model = UniformAtFirst(policy, 100, lambda: step, np.random.default_rng(3))
    given = parameters, STATES, NO_STATE, actions.noise(np.random.default_rng(5), COUNT)

    step = 99
    drawn = model.choose(*given).actions
    assert drawn.dtype == np.float32
    assert np.abs(drawn).max() <= 1
    np.testing.assert_allclose(drawn.mean(axis=0), [[0.0], [0.0]], atol=0.02)
    tenths = np.stack([np.histogram(drawn[:, row, 0], 10)[0] for row in range(2)]) / COUNT
    np.testing.assert_allclose(tenths, 0.1, atol=0.01)

    step = 100
    np.testing.assert_array_equal(model.choose(*given).actions, policy.choose(*given).actions)

"""Noise on a policy's parameters; Plappert et al. 2018."""

import numpy as np
import pytest

from relaax.learning.distributions import Deterministic
from relaax.learning.exploration.parameter_noise import ParameterNoise
from relaax.learning.networks import POLICY, Dense, Head, Network, initial_parameters
from relaax.learning.networks.manifest import NetworkParameters
from relaax.learning.networks.numpy_policy import NumpyPolicy

ACTIONS = Deterministic((2,))
NETWORK = Network.of((3,), [Dense(8)], (Head(POLICY, 2),))
VECTOR = initial_parameters(NETWORK.manifest, "uniform", 3)
STATES = np.random.default_rng(1).normal(size=(16, 3)).astype(np.float32)
QUIET, NO_STATE = np.zeros((16, 2), np.float32), np.zeros((2, 16, 0), np.float32)


def noise_of(sigma, target=None):
    return ParameterNoise(
        lambda vector: NetworkParameters(NETWORK.manifest.unpack(vector)),
        NumpyPolicy(NETWORK, ACTIONS, extras=()),
        sigma,
        np.random.default_rng(5),
        target,
    )


def distance_of(noise, parameters):
    clean = noise_of(0.0)
    found = [
        each.choose(at, STATES, NO_STATE, QUIET).actions
        for each, at in ((noise, parameters), (clean, clean.unpack(VECTOR)))
    ]
    return float(np.sqrt(np.mean((found[0] - found[1]) ** 2)))


def test_each_parameter_gets_normal_noise():
    unpacked = noise_of(0.1).unpack(VECTOR)
    joined = np.concatenate([unpacked.arrays[spec.name].ravel() for spec in NETWORK.manifest.specs])
    drawn = np.random.default_rng(5).standard_normal(len(VECTOR), np.float32)
    np.testing.assert_allclose(joined, VECTOR + 0.1 * drawn, rtol=1e-6)


def test_actions_differ_until_new_parameters_come_and_in_another_way_then():
    noise = noise_of(0.1)
    first, second = noise.unpack(VECTOR), noise.unpack(VECTOR)
    once = noise.choose(first, STATES, NO_STATE, QUIET).actions
    np.testing.assert_array_equal(once, noise.choose(first, STATES, NO_STATE, QUIET).actions)
    assert not np.array_equal(once, noise.choose(second, STATES, NO_STATE, QUIET).actions)


@pytest.mark.parametrize("sigma", [0.001, 2.0])
def test_the_deviation_finds_the_distance_that_is_asked_for(sigma):
    noise = noise_of(sigma, target=0.2)
    for _ in range(1000):
        parameters = noise.unpack(VECTOR)
        for _ in range(50):
            noise.choose(parameters, STATES, NO_STATE, QUIET)
    distances = [distance_of(noise, noise.unpack(VECTOR)) for _ in range(50)]
    assert np.mean(distances) == pytest.approx(0.2, rel=0.2)


def test_without_a_target_the_deviation_stays():
    noise = noise_of(0.1)
    for _ in range(200):
        noise.choose(noise.unpack(VECTOR), STATES, NO_STATE, QUIET)
    assert noise.sigma == 0.1

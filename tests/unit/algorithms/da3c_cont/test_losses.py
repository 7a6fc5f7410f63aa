"""The loss of continuous actions against an independent computation, by scipy's normal density."""

import dataclasses

import numpy as np
import pytest
from actor_critic_parts import gradients_of
from numpy_network import NumpyNetwork
from numpy_returns import returns_of, vtrace_of
from rollout_samples import random_rollouts
from scipy.stats import norm

from relaax.learning.networks import initial_parameters
from relaax.learning.rollouts import RolloutBatch

DISCOUNT, ROWS = 0.9, 16
SECTION = {
    "action_size": 2, "state_size": [4], "hidden_layers": [6], "lstm": False, "seed": 7,
    "rewards_gamma": DISCOUNT, "initialization": "orthogonal",
}  # fmt: skip


def terms_of(config, vector, rollout):
    """Return policy loss, value loss and entropy, summed over all steps."""
    network = NumpyNetwork(config.network, config.network.manifest.unpack(vector))
    outputs = [
        network.forward(
            rollout.observations[:, column],
            rollout.recurrent_state[:, column : column + 1],
            1 - rollout.starts[:, column],
        )[0]
        for column in range(rollout.count)
    ]
    policy = np.stack([each["policy"] for each in outputs], axis=1)[:-1]
    values = np.stack([each["value"][:, 0] for each in outputs], axis=1)
    mean, raw = np.split(policy, 2, axis=-1)
    sigma = np.exp(raw) if config.settings.sigma == "free" else np.log1p(np.exp(raw)) + 1e-3
    density = norm(mean, sigma)
    chosen = density.logpdf(rollout.actions).sum(axis=-1)
    ratios = np.exp(chosen - rollout.extras["log_probability"])
    known = np.where(rollout.on_policy > 0, ratios, 1.0)
    returns, advantages, weights = targets_of(config.settings, rollout, values, known)
    gains = weights * chosen * advantages
    clip = config.settings.policy_clip
    if clip is not None:
        limited = np.clip(ratios, 1 - clip, 1 + clip)
        gains = np.minimum(ratios * advantages, limited * advantages)
    return {
        "policy loss": -np.sum(rollout.on_policy * gains),
        "value loss": np.sum(rollout.valid * (returns - values[:-1]) ** 2) / 2,
        "entropy": np.sum(rollout.on_policy * density.entropy().sum(axis=-1)),
    }


def targets_of(settings, rollout, values, ratios):
    """What values should be, advantages, and what the policy loss weighs these with: [T, K]."""
    columns = []
    for column in range(rollout.count):
        rows = [
            array[:, column]
            for array in (rollout.rewards, rollout.terminated, rollout.valid, values, ratios)
        ]
        if settings.vtrace is not None:
            columns.append(vtrace_of(*rows, settings.vtrace, DISCOUNT, 1.0))
            continue
        returns = returns_of(*rows[:4], DISCOUNT, 1.0)
        columns.append([returns, returns - rows[3][:-1], np.ones(len(returns))])
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("sigma", ["state", pytest.param("free", marks=pytest.mark.xla)])
@pytest.mark.parametrize("correction", [{}, {"policy_clip": 0.2}, {"vtrace": True}])
def test_each_term_agrees_with_scipy(continuous, sigma, correction):
    config = continuous.Config({**SECTION, **correction, "sigma": sigma})
    continuous.prepare_to_fork()
    from relaax.learning.networks.parameters_tf import ParameterTensors

    vector = initial_parameters(config.network.manifest, "orthogonal", 7)
    random = np.random.default_rng(3)
    actions = random.normal(0.5, 2.0, (5, 3, 2)).astype(np.float32)
    likelihoods = random.uniform(-9, -1, (5, 3)).astype(np.float32)  # less and more than now
    rollout = dataclasses.replace(
        random_rollouts(config.network), actions=actions, extras={"log_probability": likelihoods}
    )
    parameters = ParameterTensors(config.network).unpack(vector)
    found = gradients_of(continuous, config).gradient(parameters, rollout).terms
    expected = terms_of(config, vector, rollout)
    sums = {name: term * rollout.steps for name, term in found.items()}
    assert sums == pytest.approx(expected, rel=1e-4)
    assert expected["entropy"] > 0


@pytest.mark.xla
def test_gradients_through_a_recurrent_layer_are_the_same_to_the_bit_each_time(continuous):
    """Where many sums ran over the rows of a rollout, their order was up to threads."""
    config = continuous.Config({"action_size": 1, "state_size": [3], "episode_len": ROWS})
    continuous.prepare_to_fork()
    from relaax.learning.networks.parameters_tf import ParameterTensors
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

    configure_tensorflow(gpu=False, has_the_machine=False)
    model, tensors = gradients_of(continuous, config), ParameterTensors(config.network)
    vector = initial_parameters(config.network.manifest, "uniform", 7)
    rollout = rollout_of(continuous, config)
    found = {model.gradient(tensors.unpack(vector), rollout).vector.tobytes() for _ in range(100)}
    assert len(found) == 1


def rollout_of(continuous, config):
    """One rollout of normal numbers."""
    normal = np.random.default_rng(3).normal
    rollout = RolloutBatch.zeros(1, ROWS, config.columns())
    columns = ("observations", "actions", "rewards", "recurrent_state")
    drawn = {name: normal(size=getattr(rollout, name).shape).astype(np.float32) for name in columns}
    ones = np.ones_like(rollout.valid)
    extras = {"log_probability": normal(size=ones.shape).astype(np.float32)}
    return dataclasses.replace(rollout, valid=ones, on_policy=ones, extras=extras, **drawn)

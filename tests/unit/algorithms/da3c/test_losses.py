"""DA3C's loss against an independent computation in numpy, in float64."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from actor_critic_parts import gradients_of
from numpy_network import NumpyNetwork
from numpy_returns import returns_of, vtrace_of
from rollout_samples import random_rollouts

from relaax.learning.networks import initial_parameters
from relaax.observations import mapped

VECTOR = {"action_size": 3, "state_size": [4], "hidden_layers": [6, 5], "seed": 7}
RECURRENT = {**VECTOR, "lstm": True, "lstm_size": 4}
IMAGE = {
    "action_size": 3,
    "state_size": [28, 36],
    "history_len": 2,
    "hidden_layers": [5],
    "seed": 7,
}
IMAGE_RECURRENT = {**IMAGE, "lstm": True, "lstm_size": 4}
CLIPPED = {**VECTOR, "policy_clip": 0.1}
VTRACE = {**VECTOR, "vtrace": {"clip_rho": 1.5, "clip_c": 0.8}, "trace_decay": 0.7}
NORMALIZED = {"normalize_advantages": True}
ALL = pytest.mark.parametrize(
    "section",
    [
        VECTOR,
        CLIPPED,
        VTRACE,
        RECURRENT,
        IMAGE,
        pytest.param(IMAGE_RECURRENT, marks=pytest.mark.xla),
        {**CLIPPED, **NORMALIZED, "trace_decay": 0.7},
        pytest.param({**VTRACE, **NORMALIZED}, marks=pytest.mark.xla),
    ],
)
ENTROPY_BETA, VALUE_LOSS_WEIGHT, DISCOUNT = 0.3, 0.7, 0.9
LOSS = {
    "entropy_beta": ENTROPY_BETA,
    "value_loss_weight": VALUE_LOSS_WEIGHT,
    "rewards_gamma": DISCOUNT,
}


class LossTwin(NumpyNetwork):
    """DA3C's network with its loss."""

    def __init__(self, network, settings, tensors, held=None):
        super().__init__(network, tensors)
        self.settings = settings
        #: Targets and advantages, once they are known: they are no functions of the parameters.
        self.held = {} if held is None else held

    def losses(self, rollout):
        """Return policy loss, value loss and entropy of rollouts, with the targets held fixed."""
        columns = [self._look_at(rollout, column) for column in range(rollout.count)]
        values, chosen, entropies = (np.stack(each, axis=1) for each in zip(*columns, strict=True))
        ratios = np.exp(chosen - rollout.extras["log_probability"])
        if not self.held:
            self.held["returns"], self.held["advantages"] = self.targets(rollout, values, ratios)
        returns, advantages = self.held["returns"], self.held["advantages"]
        return SimpleNamespace(
            policy=-np.sum(rollout.on_policy * self.gains(chosen, ratios, advantages)),
            value=0.5 * np.sum(rollout.valid * (returns - values[:-1]) ** 2),
            entropy=np.sum(rollout.on_policy * entropies),
        )

    def _look_at(self, rollout, column):
        """Return values [T + 1], log-probabilities of the actions [T] and entropies [T]."""
        outputs, _ = self.forward(
            mapped(lambda part: part[:, column], rollout.observations),
            rollout.recurrent_state[:, column : column + 1],
            1 - rollout.starts[:, column],
        )
        logits, values = outputs["policy"], outputs["value"][:, 0]
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))[:-1]
        probabilities = exponents / exponents.sum(axis=1, keepdims=True)
        actions = rollout.actions[:, column]
        chosen = np.log(probabilities[np.arange(len(actions)), actions])
        return values, chosen, -np.sum(probabilities * np.log(probabilities), axis=1)

    def targets(self, rollout, values, ratios):
        """Return what values should be, and what the policy loss weighs actions with, [T, K]."""
        settings, shape = self.settings, rollout.rewards.shape
        ratios = np.where(rollout.on_policy > 0, ratios, 1.0)
        returns, advantages, weights = np.zeros(shape), np.zeros(shape), np.ones(shape)
        for column in range(rollout.count):
            arrays = [
                array[:, column]
                for array in (rollout.rewards, rollout.terminated, rollout.valid, values, ratios)
            ]
            if settings.vtrace is None:
                returns[:, column] = returns_of(*arrays[:4], DISCOUNT, settings.trace_decay)
                advantages[:, column] = returns[:, column] - arrays[3][:-1]
            else:
                found = vtrace_of(*arrays, settings.vtrace, DISCOUNT, settings.trace_decay)
                returns[:, column], advantages[:, column], weights[:, column] = found
        if settings.normalize_advantages:
            steps = advantages[rollout.on_policy > 0]
            advantages = (advantages - steps.mean()) / steps.std()
        return returns, weights * advantages

    def gains(self, chosen, ratios, advantages):
        """What the policy loss sums: A3C's, or PPO's with a limit to the change of the policy."""
        clip = self.settings.policy_clip
        if clip is None:
            return chosen * advantages
        limited = np.where(
            advantages > 0, np.minimum(ratios, 1 + clip), np.maximum(ratios, 1 - clip)
        )
        return limited * advantages

    def loss(self, rollout):
        terms = self.losses(rollout)
        total = terms.policy - ENTROPY_BETA * terms.entropy + VALUE_LOSS_WEIGHT * terms.value
        return total / rollout.count


@pytest.fixture(name="make_case")
def _make_case(da3c):
    def make(section, count=3, **changes):
        config = da3c.Config({**section, **LOSS, **changes})
        settings, network = config.settings, config.network
        vector = initial_parameters(network.manifest, settings.initialization, settings.seed)
        da3c.prepare_to_fork()
        from relaax.learning.networks.parameters_tf import ParameterTensors

        dtype = config.columns().observation_dtype
        tensors = ParameterTensors(network)
        gradients = gradients_of(da3c, config)
        return SimpleNamespace(
            network=network,
            vector=vector,
            rollout=random_rollouts(network, count=count, dtype=dtype),
            twin=LossTwin(network, settings, network.manifest.unpack(vector)),
            gradient=lambda vector, rollout: gradients.gradient(tensors.unpack(vector), rollout),
        )

    return make


@pytest.fixture(name="case")
def _case(make_case, section):
    """Gradients, parameters, their numpy twin and three rollouts."""
    return make_case(section)


@ALL
def test_each_loss_term_agrees_with_numpy(case):
    terms = case.gradient(case.vector, case.rollout).terms
    expected, steps = case.twin.losses(case.rollout), case.rollout.steps
    assert terms["policy loss"] == pytest.approx(expected.policy / steps, rel=1e-4)
    assert terms["value loss"] == pytest.approx(expected.value / steps, rel=1e-4)
    assert terms["entropy"] == pytest.approx(expected.entropy / steps, rel=1e-4)


@ALL
def test_the_gradient_agrees_with_finite_differences_of_the_numpy_loss(case):
    gradient = case.gradient(case.vector, case.rollout).vector
    case.twin.loss(case.rollout)  # fixes targets and advantages
    directions = np.random.default_rng(2).normal(size=(8, case.vector.size))
    for direction in directions / np.linalg.norm(directions, axis=1, keepdims=True):
        assert gradient @ direction == pytest.approx(_slope(case, direction), rel=2e-3, abs=2e-4)


def _slope(case, direction, step=1e-5):
    """The loss's derivative along ``direction``, by central differences in float64."""
    sides = []
    for sign in (1, -1):
        moved = case.vector.astype(np.float64) + sign * step * direction
        tensors = case.network.manifest.unpack(moved)
        twin = LossTwin(case.network, case.twin.settings, tensors, case.twin.held)
        sides.append(twin.loss(case.rollout))
    return (sides[0] - sides[1]) / (2 * step)


def test_vtrace_weighs_by_what_the_acting_policy_thought(make_case):
    """With the policy's own probabilities it is n-step, and with others it is not."""
    plain, corrected = make_case(VECTOR), make_case(VECTOR, vtrace=True)
    rollout = plain.rollout
    own = np.zeros_like(rollout.extras["log_probability"])
    for step, column in np.ndindex(own.shape):
        observations = rollout.observations[step, column : column + 1]
        logits = plain.twin.forward(observations, None, [1])[0]["policy"]
        own[step, column] = logits[0, rollout.actions[step, column]] - np.log(
            np.exp(logits[0]).sum()
        )
    on_policy = dataclasses.replace(rollout, extras={"log_probability": own})
    expected = plain.gradient(plain.vector, rollout).vector
    same = corrected.gradient(plain.vector, on_policy).vector
    other = corrected.gradient(plain.vector, rollout).vector
    np.testing.assert_allclose(same, expected, rtol=1e-3, atol=1e-5)
    assert np.abs(other - expected).max() > 0.01


def test_no_action_gains_from_vtrace_and_normalized_advantages_together(make_case):
    """Both actions earn 1, so that no policy is better, with any policy that chose them.

    A baseline taken off after the weighting would prefer the action that has become improbable.
    """
    case = make_case({**VECTOR, "vtrace": {"clip_rho": 100.0}}, normalize_advantages=True, count=2)
    zeros = np.zeros_like(case.rollout.rewards)
    rollout = dataclasses.replace(
        case.rollout,
        rewards=zeros + 1,
        terminated=zeros + 1,
        valid=zeros + 1,
        on_policy=zeros + 1,
        extras={
            "log_probability": np.log(np.linspace(0.01, 0.9, zeros.size, dtype=np.float32)).reshape(
                zeros.shape
            )
        },
    )
    vector = np.zeros_like(case.vector)  # a uniform policy, and all values 0
    gradient = case.gradient(vector, rollout)
    assert gradient.terms["policy loss"] == pytest.approx(0.0, abs=1e-4)
    bias = case.network.manifest.unpack(gradient.vector)["policy/bias"]
    np.testing.assert_allclose(bias, 0.0, atol=1e-4)

"""ACER's update for continuous actions beside numpy: stochastic dueling, Q^opc, the region."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
from acer_parts import (
    REGION,
    VALUE_WEIGHT,
    continued,
    gradient_of,
    numbers_of,
    targets_of,
    vectors_of,
)
from rollout_samples import random_rollouts

from relaax.assembly.parts import Home
from relaax.learning.rollouts import DISTRIBUTION

FEATURES, NUMBERS, STEPS, COUNT, SAMPLES, SEED = 4, 2, 6, 4, 3, 9

LARGEST, BETA = 1.2, 0.05

SECTION = {
    "continuous": True, "state_size": [FEATURES], "action_size": NUMBERS, "network": [],
    "rollouts_per_update": COUNT, "episode_len": STEPS, "seed": 5,
}  # fmt: skip


@pytest.fixture(name="modules")
def _modules(acer):
    return [importlib.import_module(f"{acer.__name__}.{n}") for n in ("method_tf", "continuous_tf")]


@pytest.fixture(name="found")
def _found(acer, modules):
    """The gradients and terms of a loss, with all that it was computed of."""

    def found(burn_in=0, **keys):
        from relaax.learning.distributions.graph_tf import graph_of

        method, continuous = modules
        config = acer.Config({**SECTION, **keys})
        rollouts = continued(rollouts_of(config.network), burn_in)
        vector, average = vectors_of(config.network)
        (advantages, _) = vectors_of(config.advantages)
        actions = continuous.ContinuousActions(
            config.network, config.advantages, graph_of(config.distribution),
            numbers_of(method, LARGEST, BETA),
            samples=SAMPLES, moves_sigma=config.settings.sigma != "fixed", seed=SEED,
        )  # fmt: skip
        at = {"policy": vector, "average": average, "advantages": advantages}
        return rollouts, at, *gradient_of(method, actions, rollouts, at)

    return found


def rollouts_of(network):
    """Rollouts of actions that another policy has drawn."""
    rollouts, generator = random_rollouts(network, 2, COUNT, STEPS), np.random.default_rng(2)
    then = generator.normal(size=(STEPS, COUNT, 2 * NUMBERS)) * 0.3
    actions = then[..., :NUMBERS] + generator.normal(size=(STEPS, COUNT, NUMBERS))
    return replace(
        rollouts, actions=actions.astype(np.float32), extras={DISTRIBUTION: then.astype(np.float32)}
    )


def noise():
    """The noise of the actions that the loss draws: a', and those of the dueling."""
    import tensorflow as tf

    seed = np.random.default_rng(SEED).integers(2**31)
    shape = [1 + SAMPLES, STEPS, COUNT, NUMBERS]
    return tf.random.Generator.from_seed(seed).normal(shape).numpy().astype(float)


def log_likelihood(mean, sigma, actions):
    each = -np.square((actions - mean) / sigma) / 2 - np.log(sigma) - np.log(2 * np.pi) / 2
    return each.sum(-1)


class Expected:
    """Algorithm 3 in numpy, of networks without layers; the advantages are linear in the action."""

    def __init__(self, rollouts, at):
        states = rollouts.observations
        self.features = np.concatenate([states, np.ones((*states.shape[:-1], 1))], axis=-1)
        self.mean, self.sigma, self.values = self._policy(at["policy"])
        self.average_mean, _, _ = self._policy(at["average"])
        self.weights = at["advantages"][:NUMBERS].astype(float)  # of action, before observation
        self.rollouts, self.mean = rollouts, self.mean[:-1]
        self.drawn, *others = self.mean + self.sigma * noise()
        self.others = np.mean(others, axis=0)

    def _policy(self, vector):
        """Means, standard deviations and values: kernel, bias, free part, and the value's."""
        vector, kernel = vector.astype(float), FEATURES * NUMBERS
        mean = self.features[..., :-1] @ vector[:kernel].reshape(FEATURES, NUMBERS)
        mean += vector[kernel : kernel + NUMBERS]
        rest = vector[kernel + NUMBERS :]
        return mean, np.exp(rest[:NUMBERS]), self.features @ rest[NUMBERS:]

    def ratio(self, actions):
        then = self.rollouts.extras[DISTRIBUTION].astype(float)
        before = log_likelihood(then[..., :NUMBERS], np.exp(then[..., NUMBERS:]), actions)
        return np.exp(log_likelihood(self.mean, self.sigma, actions) - before)

    def value_of(self, actions):
        """Equation (13)."""
        return self.values[:-1] + (actions - self.others) @ self.weights

    def targets(self, traces):
        chosen = self.value_of(self.rollouts.actions)
        return targets_of(self.rollouts, self.values, chosen, traces)

    def gradients(self):
        own, actions = self.rollouts.on_policy, self.rollouts.actions
        ratio, values = self.ratio(actions), self.values[:-1]
        errors = self.targets(own * np.minimum(1, ratio ** (1 / NUMBERS))) - self.value_of(actions)
        cut = np.minimum(LARGEST, ratio) * (self.targets(own) - values)
        rest = np.maximum(0, 1 - LARGEST / self.ratio(self.drawn))
        rest *= self.value_of(self.drawn) - values
        assert (ratio > LARGEST).any()
        assert (rest != 0).any()
        towards = (self.mean - self.average_mean[:-1]) / self.sigma**2
        of_mean = cut[..., np.newaxis] * (actions - self.mean) / self.sigma**2
        of_mean += rest[..., np.newaxis] * (self.drawn - self.mean) / self.sigma**2
        excess = np.maximum(0, (towards * of_mean).sum(-1, keepdims=True) - REGION)
        assert 0 < (excess > 0).mean() < 1
        of_mean -= excess / np.square(towards).sum(-1, keepdims=True) * towards
        of_value = VALUE_WEIGHT * (errors + np.minimum(1, ratio) * errors)  # (6) and (14)
        counted, features = own / own.sum(), self.features[:-1]
        return (
            -np.einsum("tk,tkf,tka->fa", counted, features, of_mean),
            -np.einsum("tk,tkf,tk->f", counted, features, of_value),
            -VALUE_WEIGHT * np.einsum("tk,tk,tka->a", counted, errors, actions - self.others),
        )


@pytest.mark.parametrize("burn_in", [0, 2])
def test_the_loss_has_the_gradient_of_the_paper(found, burn_in):
    rollouts, at, gradients, terms = found(burn_in)
    of_mean, of_value, of_advantages = Expected(rollouts, at).gradients()
    size = (FEATURES + 1) * NUMBERS
    rtol = {"rtol": 2e-3, "atol": 2e-4}
    np.testing.assert_allclose(gradients["policy"][:size], of_mean.ravel(), **rtol)
    np.testing.assert_allclose(gradients["policy"][size + NUMBERS :], of_value, **rtol)
    np.testing.assert_allclose(gradients["advantages"][:NUMBERS], of_advantages, **rtol)
    np.testing.assert_allclose(gradients["advantages"][NUMBERS:], 0, atol=1e-6)
    assert 0 < terms["constrained"] < 1


def test_deviations_move_only_where_they_are_not_fixed(found):
    size = (FEATURES + 1) * NUMBERS
    for sigma, moves in (("fixed", False), ("free", True)):
        gradients = found(sigma=sigma)[2]
        assert gradients["policy"][size : size + NUMBERS].any() == moves


def test_the_values_of_the_policys_own_actions_have_the_states_value_as_their_mean(modules):
    """The identity below equation (13), with the sampled actions themselves."""
    _, continuous = modules
    generator = np.random.default_rng(1)
    values = generator.normal(size=(STEPS, COUNT)).astype(np.float32)
    advantages = generator.normal(size=(SAMPLES, STEPS, COUNT)).astype(np.float32) * 9
    of_actions = [continuous.dueling(values, own, list(advantages)) for own in advantages]
    np.testing.assert_allclose(np.mean(of_actions, axis=0), values, atol=1e-5)


def test_dueling_by_hand(modules):
    """V = 10, A(a) = 3, A(u) = 1 and 5: 10 + 3 - (1 + 5) / 2 = 10."""
    _, continuous = modules
    found = continuous.dueling(*np.float32([[10], [3]]), list(np.float32([[1], [5]])))
    np.testing.assert_allclose(found, [10])


def test_a_recurrent_layer_is_refused(acer):
    with pytest.raises(ValueError, match="no lstm"):
        acer.Config({**{k: v for k, v in SECTION.items() if k != "network"}, "lstm": True})
    with pytest.raises(ValueError, match="no lstm"):
        acer.Config({**SECTION, "network": [{"lstm": 8}]})


@pytest.mark.parametrize("keys", [{"action_bits": 2}, {"action_size": [2, 3]}])
def test_discrete_actions_are_one_choice(acer, keys):
    with pytest.raises(ValueError, match=next(iter(keys))):
        acer.Config({"state_size": [3], "action_size": 2, **keys})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"entropy_beta": 0.01}, "entropy_beta: no effect without sigma: free or state"),
        ({"trust_region": None, "average_decay": 0.9}, "average_decay: no effect without trust_"),
    ],
)
def test_keys_without_effect_are_refused(acer, keys, message):
    with pytest.raises(ValueError, match=message):
        acer.Config({**SECTION, **keys})
    acer.Config({**SECTION, **keys, "sigma": "free", "trust_region": 1})


@pytest.mark.parametrize("initialization", ["uniform", "orthogonal"])
def test_all_networks_begin_as_the_key_says(acer, initialization):
    """Orthogonal layers have biases of zeros."""
    keys = {"network": [{"dense": 8}], "initialization": initialization}
    builder = acer.Builder(acer.Config({**SECTION, **keys}))
    learner = builder.learner(Home(1, np.random.default_rng(7), None))
    networks = {"policy": builder.config.network, "advantages": builder.config.advantages}
    for name, network in networks.items():
        first = network.manifest.unpack(learner.state()[name])
        assert first["dense0/bias"].any() == (initialization == "uniform")


@pytest.mark.parametrize("sigma", ["fixed", "free", "state"])
def test_a_step_of_the_learner_moves_the_deviations_that_are_not_fixed(acer, sigma):
    builder = acer.Builder(acer.Config({**SECTION, "sigma": sigma}))
    learner, network = builder.learner(Home(1, np.random.default_rng(7), None)), builder.network()
    rollouts = rollouts_of(network)
    batches = {
        table: rollouts.chosen(np.arange(each.batch_size) % COUNT)
        for table, each in learner.inputs.items()
    }
    first = {name: np.copy(array) for name, array in learner.state().items()}
    list(learner.steps(batches))
    last = learner.state()
    for name in ("policy", "advantages", "average"):
        assert np.isfinite(last[name]).all()
        assert (last[name] != first[name]).any()
    before, after = (network.manifest.unpack(state["policy"]) for state in (first, last))
    part = "policy/kernel" if sigma == "state" else "policy/free"
    columns = slice(NUMBERS, None) if sigma == "state" else slice(None)
    moves = (after[part] != before[part])[..., columns]
    assert moves.all() == moves.any() == (sigma != "fixed")

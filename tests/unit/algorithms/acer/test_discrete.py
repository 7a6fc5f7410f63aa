"""ACER's update for discrete actions beside numpy, and its trust region beside scipy."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
from acer_parts import (
    REGION,
    VALUE_WEIGHT,
    chained,
    continued,
    gradient_of,
    numbers_of,
    outputs_of,
    targets_of,
    vectors_of,
)
from rollout_samples import random_rollouts

from relaax.assembly.parts import Home
from relaax.errors import ConfigurationError
from relaax.learning.rollouts import DISTRIBUTION, ROLLOUTS, RolloutBatch

FEATURES, ACTIONS, STEPS, COUNT = 4, 3, 6, 4

LARGEST, BETA = 1.5, 0.02

SECTION = {
    "state_size": [FEATURES], "action_size": ACTIONS, "network": [], "rollouts_per_update": COUNT,
    "episode_len": STEPS, "seed": 5,
}  # fmt: skip


@pytest.fixture(name="method")
def _method(acer):
    return importlib.import_module(f"{acer.__name__}.method_tf")


def softmax(logits):
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def rollouts_of(network, dtype=np.float32):
    """Rollouts whose actions other policies have drawn."""
    rollouts = random_rollouts(network, ACTIONS, COUNT, STEPS, dtype)
    then = np.random.default_rng(2).normal(size=(STEPS, COUNT, ACTIONS)).astype(np.float32)
    return replace(rollouts, extras={DISTRIBUTION: then})


# The trust region: equations (11) and (12).


def nearest(gradient, towards, most):
    """The solution of (11), by an optimiser that does not know (12)."""
    found = scipy.optimize.minimize(
        lambda z: 0.5 * np.square(gradient - z).sum(),
        np.zeros(len(gradient)),
        jac=lambda z: z - gradient,
        constraints={
            "type": "ineq",
            "fun": lambda z: most - towards @ z,
            "jac": lambda _: -towards,
        },
        method="SLSQP",
        options={"ftol": 1e-12},
    )
    assert found.success
    return found.x


def test_the_direction_is_the_nearest_one_within_the_region(method):
    generator = np.random.default_rng(1)
    gradients, towards = generator.normal(size=(2, 30, 5)) * 2
    found = method.within_region(np.float32(gradients), np.float32(towards), REGION).numpy()
    expected = [nearest(*pair, REGION) for pair in zip(gradients, towards, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    is_within = (gradients * towards).sum(-1) <= REGION
    assert 0 < is_within.sum() < 30
    np.testing.assert_allclose(found[is_within], gradients[is_within], rtol=1e-6)


@pytest.mark.parametrize(
    ("most", "expected"), [(6.0, [3, 4]), (7.0, [3, 4]), (2.0, [1, 4]), (None, [3, 4])]
)
def test_the_region_by_hand(method, most, expected):
    """g = (3, 4), k = (2, 0): k g = 6; for delta = 2 it is shortened by (6 - 2) / 4 times k."""
    found = method.within_region(np.float32([3, 4]), np.float32([2, 0]), most)
    np.testing.assert_allclose(found, expected)


def test_a_policy_that_is_the_average_one_is_not_held_back(method):
    """There k has one value for all actions, which moves no probability."""
    policy = np.array([0.2, 0.3, 0.5])
    gradient = np.float32([-30, 10, 2])
    direction = method.within_region(gradient, -np.ones(3, np.float32), 1.0).numpy()

    def of_logits(of_policy):
        return policy * (of_policy - policy @ of_policy)

    assert (direction != gradient).any()
    np.testing.assert_allclose(of_logits(direction), of_logits(gradient), atol=1e-5)


# The gradient: equations (7) and (10).


@pytest.mark.parametrize("largest", [1.0, 1.5, 50.0])
def test_truncation_with_its_correction_leaves_the_gradient_without_bias(method, largest):
    """The mean over what the other policy does is the gradient of the policy's own return."""
    generator = np.random.default_rng(4)
    policy, then = softmax(generator.normal(size=(2, 20, ACTIONS)) * 1.5)
    values = generator.normal(size=(20, ACTIONS))
    ratios, total = policy / then, np.zeros((20, ACTIONS))
    assert (ratios > 1.5).any()
    for action in range(ACTIONS):
        taken = np.eye(ACTIONS)[[action] * 20]
        arrays = (policy, taken, ratios, values[:, action], values)
        found = method.gradient_of_probabilities(*map(np.float32, arrays), largest)
        total += then[:, [action]] * found.numpy()
    advantages = values - (policy * values).sum(-1, keepdims=True)
    np.testing.assert_allclose(total, advantages, rtol=1e-4, atol=1e-4)


def test_a_cut_weight_is_made_up_for_by_hand(method):
    """phi = (1/2, 1/2), rho = (4, 1/2), c = 2, Q = (3, 1), V = 2, Q^ret of action 0 = 5.

    Action 0: (2 * (5 - 2) + 1/2 * (1 - 2/4) * (3 - 2)) / (1/2) = 12.5; action 1 has no part.
    """
    arrays = [0.5, 0.5], [1, 0], [4, 0.5], 5, [3, 1]
    found = method.gradient_of_probabilities(*map(np.float32, arrays), 2.0)
    np.testing.assert_allclose(found, [12.5, 0], rtol=1e-6)


def test_the_gradient_of_the_entropy(method):
    policy = np.array([0.2, 0.3, 0.5])
    expected = scipy.optimize.approx_fprime(policy, lambda p: -(p * np.log(p)).sum(), 1e-8)
    np.testing.assert_allclose(method.gradient_of_entropy(np.float32(policy)), expected, atol=1e-5)


class Expected:
    """The loss's gradient by the network's outputs, as algorithm 2 says it."""

    def __init__(self, rollouts, outputs, average):
        self._rollouts, self.values = rollouts, outputs["action_values"]
        self.policy, self.average = softmax(outputs["policy"]), softmax(average["policy"])
        self.taken = np.eye(ACTIONS)[rollouts.actions]
        self.ratios = self.policy[:-1] / softmax(rollouts.extras[DISTRIBUTION].astype(float))

    def up(self):
        rollouts, policy, taken = self._rollouts, self.policy[:-1], self.taken
        state_values = (self.policy * self.values).sum(-1)
        chosen_values = (taken * self.values[:-1]).sum(-1)
        ratio = (taken * self.ratios).sum(-1)
        traces = rollouts.on_policy * np.minimum(1, ratio)
        targets = targets_of(rollouts, state_values, chosen_values, traces)
        own = np.minimum(LARGEST, ratio) * (targets - state_values[:-1])
        others = np.maximum(0, (self.ratios - LARGEST) / self.ratios) * policy
        others *= self.values[:-1] - state_values[:-1, :, np.newaxis]
        of_policy = (taken * own[..., np.newaxis] + others) / policy
        of_policy += BETA * (-np.log(policy) - 1)
        towards = -self.average[:-1] / policy
        excess = np.maximum(0, (towards * of_policy).sum(-1, keepdims=True) - REGION)
        assert 0 < (excess > 0).mean() < 1
        of_policy -= excess / np.square(towards).sum(-1, keepdims=True) * towards
        mean = (policy * of_policy).sum(-1, keepdims=True)
        of_values = VALUE_WEIGHT * taken * (targets - chosen_values)[..., np.newaxis]
        counted = (rollouts.on_policy / rollouts.on_policy.sum())[..., np.newaxis]
        return {
            "policy": -counted * policy * (of_policy - mean),
            "action_values": -counted * of_values,
        }


@pytest.mark.parametrize(
    ("layers", "burn_in"),
    [([], 0), ([{"lstm": 3}], 0), ([{"lstm": 3}], 2)],
    ids=["no layers", "recurrent", "recurrent with a burn-in"],
)
def test_the_loss_has_the_gradient_of_the_paper(acer, method, layers, burn_in):
    network = acer.Config({**SECTION, "network": layers}).network
    rollouts, (vector, average) = continued(rollouts_of(network), burn_in), vectors_of(network)

    def outputs(at):
        return outputs_of(network, at, rollouts, burn_in, vector)

    of_average = outputs_of(network, average, rollouts, burn_in, average)
    expected = Expected(rollouts, outputs(vector), of_average)
    assert (expected.ratios > LARGEST).any()
    actions = method.DiscreteActions(network, None, numbers_of(method, LARGEST, BETA))
    found, terms = gradient_of(method, actions, rollouts, {"policy": vector, "average": average})
    gradient = chained(expected.up(), outputs, vector)
    np.testing.assert_allclose(found["policy"], gradient, rtol=2e-3, atol=2e-4)
    assert not found["average"].any()
    assert 0 < terms["constrained"] < 1


def test_no_gradient_reaches_a_forbidden_action(acer, method):
    section = {**SECTION, "state_size": {"seen": [FEATURES], "mask": [ACTIONS]}}
    config = acer.Config({**section, "action_mask": "mask"})
    (vector, average) = vectors_of(config.network)
    rollouts = rollouts_of(config.network, {"seen": np.float32})
    mask = np.tile(np.uint8([1, 1, 0]), (STEPS + 1, COUNT, 1))
    then = np.where(mask[:-1], rollouts.extras[DISTRIBUTION], np.float32(-1e30))
    rollouts = replace(
        rollouts,
        observations={**rollouts.observations, "mask": mask},
        actions=rollouts.actions % 2,
        extras={DISTRIBUTION: then},
    )
    actions = method.DiscreteActions(config.network, "mask", numbers_of(method, LARGEST, BETA))
    found, _ = gradient_of(method, actions, rollouts, {"policy": vector, "average": average})
    by_name = config.network.manifest.unpack(found["policy"])
    assert np.isfinite(found["policy"]).all()
    for part in ("policy/kernel", "policy/bias"):
        assert by_name[part][..., :2].any()
        assert not by_name[part][..., 2].any()


# The order of updates: algorithm 1.


def batches_for(builder, replayed):
    network = builder.config.network
    fresh = rollouts_of(network)
    drawn = random_rollouts(network, ACTIONS, replayed, STEPS)
    then = np.zeros((STEPS, replayed, ACTIONS), np.float32)
    return {ROLLOUTS: fresh, "replayed": replace(drawn, extras={DISTRIBUTION: then})}


def test_updates_from_replay_are_drawn_from_a_poisson_distribution(acer):
    builder = acer.Builder(acer.Config({**SECTION, "replay_ratio": 1.5}))
    learner = builder.learner(Home(1, np.random.default_rng(7), None))
    twin = np.random.default_rng(7)
    batches = batches_for(builder, learner.inputs["replayed"].batch_size)
    counts = []
    for _ in range(12):
        (step,) = learner.steps(batches)
        drawn = twin.poisson(1.5)
        twin.permutation(4 * COUNT)
        counts.append(drawn)
        assert (step.updates, step.terms["updates from replay"]) == (1 + drawn, drawn)
    assert {0, 1, 2} < set(counts)


@pytest.mark.parametrize("ratio", [0.5, 1, 4])
def test_each_update_from_replay_has_rollouts_of_its_own(acer, monkeypatch, ratio):
    builder = acer.Builder(acer.Config({**SECTION, "replay_ratio": ratio}))
    learner = builder.learner(Home(1, np.random.default_rng(7), None))
    drawn = learner.inputs["replayed"].batch_size
    chosen, whole, reused = [], RolloutBatch.chosen, 0
    monkeypatch.setattr(
        RolloutBatch, "chosen", lambda batch, which: chosen.append(which) or whole(batch, which)
    )
    batches = batches_for(builder, drawn)
    for _ in range(300):
        chosen.clear()
        list(learner.steps(batches))
        assert all(len(set(part)) == COUNT for part in chosen)
        times = np.bincount(np.concatenate([[], *chosen]).astype(int), minlength=drawn)
        reused += times.max() > 1
        assert times.max() <= -(-len(chosen) * COUNT // drawn)
    assert 0 < reused < 300 * 0.06


def test_the_average_policy_follows_after_each_update(acer):
    keys = {**SECTION, "replay_ratio": 0, "average_decay": 0.75}
    builder = acer.Builder(acer.Config(keys))
    learner = builder.learner(Home(1, np.random.default_rng(7), None))
    first = learner.values()["default"]
    fresh = batches_for(builder, COUNT)[ROLLOUTS]
    (step,) = learner.steps({ROLLOUTS: fresh})
    second, average = learner.values()["default"], learner.state()["average"]
    assert step.updates == 1
    assert (second != first).any()
    np.testing.assert_allclose(average, 0.75 * first + 0.25 * second, rtol=1e-5, atol=1e-6)


def test_without_a_replay_ratio_fresh_rollouts_alone_are_drawn(acer):
    def tables_of(**keys):
        return acer.replay_spec(acer.Config({**SECTION, **keys})).tables

    assert {*tables_of()} == {ROLLOUTS, "replayed"}
    assert {*tables_of(replay_ratio=0)} == {ROLLOUTS}


def test_a_replay_that_is_smaller_than_its_draw_is_refused(acer):
    with pytest.raises((ValueError, ConfigurationError), match="100 steps are fewer than the 216"):
        acer.Config({**SECTION, "replay_size": 100, "replay_ratio": 4.5})


def test_replayed_rewards_are_not_counted_again_in_their_statistics(acer):
    config = acer.Config({**SECTION, "filter_rewards": True})
    learner, filters = acer.make_learner(config, 3), config.filters()
    batches = batches_for(acer.Builder(config), learner.inputs["replayed"].batch_size)
    fresh, replayed = batches[ROLLOUTS], batches["replayed"]
    observations = fresh.observations.astype(config.columns().observation_dtype)
    batches[ROLLOUTS] = replace(fresh, observations=observations)
    batches["replayed"] = replace(
        replayed,
        observations=replayed.observations.astype(observations.dtype),
        rewards=9 + replayed.rewards,
    )
    list(learner.steps(batches))
    filters.use(filters.separated(learner.values()["default"])[1])
    seen = fresh.rewards[fresh.valid > 0]
    expected = np.sqrt(np.square(seen).mean())
    assert 1 / float(filters.rewards.scale.factor[0]) == pytest.approx(expected, rel=1e-4)

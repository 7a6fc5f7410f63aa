"""SAC's losses and updates, beside numpy; Haarnoja et al. 2018, arXiv:1812.05905."""

import numpy as np
import pytest
import tensorflow as tf

from relaax.learning.distributions.squashed_gaussian import log_slope
from relaax.learning.optimizers import Adam, AdamSettings

SECTION = {
    "state_size": [3], "action_size": 2, "action_low": [-1, -2], "action_high": [1, 3],
    "hidden_layers": [4], "target_rate": 0.25, "seed": 3,
}  # fmt: skip
COUNT, SIZE, ACTIONS = 5, 3, 2


@pytest.fixture(name="losses", scope="module")
def _losses(sac_module):
    return sac_module("losses_tf")


class TestLosses:
    VALUES = np.array([[1.0, 4.0], [2.0, 3.0]], np.float32)

    def test_a_target_is_the_reward_and_the_smaller_soft_value_of_what_follows(self, losses):
        found = losses.soft_target(
            np.array([1.0, 2.0], np.float32),
            np.array([0.5, 0.0], np.float32),
            self.VALUES,
            np.array([-2.0, 7.0], np.float32),
            np.float32(0.1),
        )
        np.testing.assert_allclose(found, [1 + 0.5 * (1 + 0.2), 2], rtol=1e-6)

    def test_both_critics_learn_the_same_target(self, losses):
        found = losses.critic_loss(
            self.VALUES, np.array([0.0, 1.0], np.float32), np.array([1.0, 0.5], np.float32)
        )
        expected = 0.5 * np.mean([(1 + 4) * 1.0, (9 + 4) * 0.5])
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    def test_the_policy_gives_up_value_for_entropy(self, losses):
        found = losses.policy_loss(self.VALUES, np.array([2.0, -1.0], np.float32), np.float32(0.5))
        np.testing.assert_allclose(found, np.mean([1 - 1, -0.5 - 3]), rtol=1e-6)

    @pytest.mark.parametrize(("likelihood", "grows"), [(3.0, True), (1.0, False)])
    def test_the_temperature_grows_where_there_is_too_little_entropy(
        self, losses, likelihood, grows
    ):
        log_temperature = tf.Variable([0.3])
        with tf.GradientTape() as tape:
            loss = losses.temperature_loss(
                log_temperature, np.full(4, likelihood, np.float32), target_entropy=-2.0
            )
        (slope,) = tape.gradient(loss, log_temperature).numpy()
        assert slope == pytest.approx(-(likelihood - 2.0))
        assert (slope < 0) == grows  # a step goes against the slope


class Numpy:
    """The same networks and losses in numpy, float64."""

    def __init__(self, config):
        self.config = config
        self.half = config.distribution.half.astype(np.float64)
        self.middle = config.distribution.middle.astype(np.float64)

    def outputs(self, network, vector, inputs):
        parts, at = {}, 0
        for spec in network.manifest.specs:
            parts[spec.name] = vector[at : at + spec.size].reshape(spec.shape)
            at += spec.size
        (head,) = network.heads
        hidden = inputs
        if network.is_named:
            hidden = np.concatenate([inputs[name] for name in sorted(inputs)], axis=1)
        hidden = np.maximum(hidden @ parts["dense0/kernel"] + parts["dense0/bias"], 0)
        return hidden @ parts[f"{head.name}/kernel"] + parts[f"{head.name}/bias"]

    def choose(self, policy, observations, noise):
        mean, raw = np.split(self.outputs(self.config.network, policy, observations), 2, axis=1)
        sigma = np.exp(np.clip(raw, -20, 2))
        draws = mean + sigma * noise
        gaussian = -0.5 * noise**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
        slopes = log_slope(draws) + np.log(self.half)
        return self.middle + self.half * np.tanh(draws), (gaussian - slopes).sum(axis=1)

    def values(self, critics, observations, actions):
        inputs = {"observation": observations, "action": actions}
        halves = np.split(critics, 2)
        return np.stack([self.outputs(self.config.critic, h, inputs)[:, 0] for h in halves])


def slope_of(function, vector):
    """The gradient of ``function`` at ``vector``, by central differences."""
    slope = np.zeros_like(vector)
    for index in range(len(vector)):
        step = np.zeros_like(vector)
        step[index] = 1e-6
        slope[index] = (function(vector + step) - function(vector - step)) / 2e-6
    return slope


def batch_of(module, random):
    return module.Transitions(
        observations=random.normal(size=(COUNT, SIZE)).astype(np.float32),
        actions=random.uniform(-0.9, 0.9, size=(COUNT, ACTIONS)).astype(np.float32),
        rewards=random.normal(size=COUNT).astype(np.float32),
        discounts=np.array([0.9, 0.0, 0.9, 0.81, 0.9], np.float32),
        next_observations=random.normal(size=(COUNT, SIZE)).astype(np.float32),
        weights=np.array([1.0, 0.5, 1.0, 1.0, 0.25], np.float32),
        noise=random.normal(size=(2, COUNT, ACTIONS)).astype(np.float32),
    )


def test_an_update_moves_everything_as_numpy_does(sac, sac_module):
    config = sac.Config(SECTION)
    learner = sac.make_learner(config, 3)
    update = learner._update
    before = {name: value.astype(np.float64) for name, value in update.state().items()}
    batch = batch_of(sac_module("update_tf"), np.random.default_rng(0))
    errors, terms = update(batch)
    after = update.state()

    ours = Numpy(config)
    actions, likelihoods = ours.choose(before["policy"], batch.next_observations, batch.noise[1])
    following = ours.values(before["targets"], batch.next_observations, actions)
    targets = batch.rewards + batch.discounts * (following.min(axis=0) - likelihoods)

    def critic_loss(critics):
        distances = (ours.values(critics, batch.observations, batch.actions) - targets) ** 2
        return 0.5 * np.mean(distances.sum(axis=0) * batch.weights)

    slope = slope_of(critic_loss, before["critics"])
    np.testing.assert_allclose(after["critics/adam/mean"], 0.1 * slope, rtol=1e-3, atol=1e-6)
    critics = stepped(before["critics"], slope)
    np.testing.assert_allclose(after["critics"], critics, atol=2e-6)
    np.testing.assert_allclose(terms["critic loss"], critic_loss(before["critics"]), rtol=1e-5)

    def policy_loss(policy):
        actions, likelihoods = ours.choose(policy, batch.observations, batch.noise[0])
        values = ours.values(critics, batch.observations, actions)
        return np.mean(likelihoods - values.min(axis=0))

    slope = slope_of(policy_loss, before["policy"])
    np.testing.assert_allclose(after["policy/adam/mean"], 0.1 * slope, rtol=1e-3, atol=1e-6)
    policy = stepped(before["policy"], slope)
    np.testing.assert_allclose(after["policy"], policy, atol=2e-6)

    _, likelihoods = ours.choose(before["policy"], batch.observations, batch.noise[0])
    slope = np.array([-(likelihoods.mean() + config.target_entropy)])
    np.testing.assert_allclose(
        after["log_temperature"], stepped(before["log_temperature"], slope), atol=1e-7
    )
    followed = before["targets"] + 0.25 * (critics - before["targets"])
    np.testing.assert_allclose(after["targets"], followed, atol=2e-6)
    values = ours.values(before["critics"], batch.observations, batch.actions)
    np.testing.assert_allclose(errors, np.abs(values - targets).mean(axis=0), rtol=1e-4)


def stepped(vector, slope):
    """The vector after Adam's first step."""
    moved = vector.astype(np.float32)
    Adam(len(vector), AdamSettings()).apply(moved, slope.astype(np.float32), 3e-4)
    return moved


def test_a_learner_goes_on_from_its_state_to_the_bit(sac, sac_module):
    config = sac.Config(SECTION)
    module = sac_module("update_tf")
    batches = [batch_of(module, np.random.default_rng(n)) for n in range(6)]
    whole, half = sac.make_learner(config, 3), sac.make_learner(config, 3)
    for batch in batches:
        whole.step(batch)
    for batch in batches[:3]:
        half.step(batch)
    restored = sac.make_learner(config, 99)
    restored.restore(half.state())
    for batch in batches[3:]:
        restored.step(batch)
    for name, value in whole.state().items():
        np.testing.assert_array_equal(restored.state()[name], value, err_msg=name)

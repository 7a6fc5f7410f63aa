"""SAC's losses and updates, beside numpy; Haarnoja et al. 2018, arXiv:1812.05905."""

import numpy as np
import pytest
import tensorflow as tf
from driven_learner import DrivenLearner
from transition_batches import (
    COUNT,
    LEAST_PRIORITY,
    batch_of,
    critic_values,
    hidden_outputs,
    require_state_to_the_bit,
    slope_of,
    stepped,
)

from relaax.learning.distributions.squashed_gaussian import log_slope

SECTION = {
    "state_size": [3], "action_size": 2, "action_low": [-1, -2], "action_high": [1, 3],
    "hidden_layers": [4], "target_rate": 0.25, "seed": 3,
}  # fmt: skip
ACTIONS = 2


@pytest.fixture(name="losses", scope="module")
def _losses(sac_module):
    return sac_module("method_tf")


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

    def choose(self, policy, observations, noise):
        outputs = hidden_outputs(self.config.network, policy, observations)["policy"]
        mean, raw = np.split(outputs, 2, axis=1)
        sigma = np.exp(np.clip(raw, -20, 2))
        draws = mean + sigma * noise
        gaussian = -0.5 * noise**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
        return np.tanh(draws), (gaussian - log_slope(draws)).sum(axis=1)

    def values(self, critics, observations, actions):
        return critic_values(self.config.critic, critics, 2, observations, actions)


def sac_batch(seed):
    random = np.random.default_rng(seed)
    actions = random.uniform(-0.9, 0.9, size=(COUNT, ACTIONS)).astype(np.float32)
    noise = random.normal(size=(2, COUNT, ACTIONS)).astype(np.float32)
    return batch_of(random, actions, noise)


def test_an_update_moves_everything_as_numpy_does(sac):
    config = sac.Config({**SECTION, "prioritized": True})
    learner = DrivenLearner(sac.make_learner(config, 3))
    before = {name: value.astype(np.float64) for name, value in learner.state().items()}
    batch = sac_batch(0)
    result = learner.step({"all": batch})
    terms, errors = result.terms, result.priorities["all"] - LEAST_PRIORITY
    after = learner.state()

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
        values = ours.values(before["critics"], batch.observations, actions)
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


def test_a_learner_goes_on_from_its_state_to_the_bit(sac):
    config = sac.Config(SECTION)
    batches = [sac_batch(number) for number in range(6)]
    require_state_to_the_bit(lambda seed: sac.make_learner(config, seed), batches)

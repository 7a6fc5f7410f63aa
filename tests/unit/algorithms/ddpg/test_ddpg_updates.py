"""DDPG's and TD3's losses and updates, beside numpy; arXiv:1509.02971 and 1802.09477."""

from itertools import pairwise

import numpy as np
import pytest
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

ACTIONS = 2
DDPG = {
    "state_size": [3], "action_size": ACTIONS, "action_low": [-1, -2], "action_high": [1, 3],
    "hidden_layers": [4], "target_rate": 0.25, "seed": 3,
}  # fmt: skip
TD3 = {**DDPG, "twin": True}


@pytest.fixture(name="losses", scope="module")
def _losses(ddpg_module):
    return ddpg_module("method_tf")


class TestLosses:
    VALUES = np.array([[1.0, 4.0], [2.0, 3.0]], np.float32)

    def test_a_target_is_the_reward_and_the_smallest_value_of_what_follows(self, losses):
        rewards, discounts = np.array([1.0, 2.0], np.float32), np.array([0.5, 0.0], np.float32)
        found = losses.target_values(rewards, discounts, self.VALUES)
        np.testing.assert_allclose(found, [1.5, 2.0])

    def test_noise_on_actions_is_cut_and_they_stay_between_the_bounds(self, losses):
        places = np.array([[0.0, 0.9, -0.9]], np.float32)
        noise = np.array([[10.0, 1.0, 0.5]], np.float32)
        found = losses.smoothed_places(places, noise, 0.2, 0.5)
        np.testing.assert_allclose(found, [[0.5, 1.0, -0.8]], rtol=1e-6)

    def test_all_critics_learn_the_same_target(self, losses):
        found = losses.critic_loss(
            self.VALUES, np.array([0.0, 1.0], np.float32), np.array([1.0, 0.5], np.float32)
        )
        np.testing.assert_allclose(found, np.mean([(1 + 4) * 1.0, (9 + 4) * 0.5]), rtol=1e-6)


def ddpg_batch(seed):
    random = np.random.default_rng(seed)
    actions = random.uniform(-0.9, 0.9, size=(COUNT, ACTIONS)).astype(np.float32)
    return batch_of(random, actions, random.normal(size=(COUNT, ACTIONS)).astype(np.float32))


@pytest.mark.parametrize(("section", "sigma"), [(DDPG, 0.0), (TD3, 0.2)], ids=["DDPG", "TD3"])
def test_updates_move_everything_as_numpy_does(ddpg, section, sigma):
    """The second one, in which TD3's policy learns and its targets move."""
    config = ddpg.Config({**section, "prioritized": True})
    critics_count = config.settings.critics
    learner = DrivenLearner(ddpg.make_learner(config, 3))
    delay = config.settings.policy_delay
    for number in range(1, delay):
        learner.step({"all": ddpg_batch(100 + number)})
    before = {name: array.astype(np.float64) for name, array in learner.state().items()}
    batch = ddpg_batch(0)
    result = learner.step({"all": batch})
    terms, errors = result.terms, result.priorities["all"] - LEAST_PRIORITY
    after = learner.state()

    def places(policy, observations):
        return np.tanh(hidden_outputs(config.network, policy, observations)["policy"])

    def values(critics, count, observations, at):
        return critic_values(config.critic, critics, count, observations, at)

    smoothed = places(before["target_policy"], batch.next_observations)
    smoothed = np.clip(smoothed + np.clip(sigma * batch.noise, -0.5, 0.5), -1, 1)
    behind = values(before["target_critics"], critics_count, batch.next_observations, smoothed)
    targets = batch.rewards + batch.discounts * behind.min(axis=0)

    def of_taken(critics):
        return critic_values(
            config.critic, critics, critics_count, batch.observations, batch.actions
        )

    def critic_loss(critics):
        return np.mean(((of_taken(critics) - targets) ** 2).sum(axis=0) * batch.weights)

    slope = slope_of(critic_loss, before["critics"])
    mean = 0.9 * before["critics/adam/mean"] + 0.1 * slope
    np.testing.assert_allclose(after["critics/adam/mean"], mean, rtol=1e-3, atol=2e-6)
    np.testing.assert_allclose(terms["critic loss"], critic_loss(before["critics"]), rtol=1e-5)
    errors_of_numpy = np.abs(of_taken(before["critics"]) - targets).mean(axis=0)
    np.testing.assert_allclose(errors, errors_of_numpy, rtol=1e-4)
    if delay == 1:
        expected = stepped(before["critics"], slope, 1e-3)
        np.testing.assert_allclose(after["critics"], expected, atol=2e-6)

    first = before["critics"][: len(before["critics"]) // critics_count]

    def policy_loss(policy):
        at = places(policy, batch.observations)
        return -values(first, 1, batch.observations, at).mean()

    slope = slope_of(policy_loss, before["policy"])
    np.testing.assert_allclose(after["policy/adam/mean"], 0.1 * slope, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(after["policy"], stepped(before["policy"], slope, 1e-3), atol=2e-6)
    for target, leader in (("target_policy", "policy"), ("target_critics", "critics")):
        followed = before[target] + 0.25 * (after[leader] - before[target])
        np.testing.assert_allclose(after[target], followed, atol=2e-6)


def test_the_policy_of_td3_learns_at_every_second_update(ddpg):
    learner = DrivenLearner(ddpg.make_learner(ddpg.Config(TD3), 3))
    policies = [learner.vector()]
    for number in range(4):
        learner.step({"all": ddpg_batch(number)})
        policies.append(learner.vector())
    changes = [bool((old != new).any()) for old, new in pairwise(policies)]
    assert changes == [False, True, False, True]


@pytest.mark.parametrize("section", [DDPG, TD3], ids=["DDPG", "TD3"])
def test_a_learner_goes_on_from_its_state_to_the_bit(ddpg, section):
    config = ddpg.Config(section)
    batches = [ddpg_batch(number) for number in range(6)]
    require_state_to_the_bit(lambda seed: ddpg.make_learner(config, seed), batches)


def test_hard_targets_are_copies_after_some_updates(ddpg):
    config = ddpg.Config({**DDPG, "target_rate": 1.0, "target_every": 3})
    learner = DrivenLearner(ddpg.make_learner(config, 3))
    first = learner.state()["target_critics"]
    for number in range(2):
        learner.step({"all": ddpg_batch(number)})
    np.testing.assert_array_equal(learner.state()["target_critics"], first)
    learner.step({"all": ddpg_batch(2)})
    state = learner.state()
    np.testing.assert_allclose(state["target_critics"], state["critics"], atol=1e-6)


class TestSettings:
    def test_twin_gives_the_values_of_td3(self, ddpg):
        settings = ddpg.Config(TD3).settings
        assert (settings.critics, settings.policy_delay, settings.target_noise) == (2, 2, 0.2)

    def test_as_many_updates_as_there_is_time_for_can_be_asked_for(self, ddpg):
        assert ddpg.Config({**TD3, "updates_per_step": None}).settings.updates_per_step is None

    def test_given_values_stay(self, ddpg):
        settings = ddpg.Config({**TD3, "policy_delay": 3, "target_noise": 0.0}).settings
        assert (settings.policy_delay, settings.target_noise) == (3, 0.0)

    def test_actions_are_random_until_learning_starts_unless_something_else_is_said(self, ddpg):
        assert ddpg.Config({**DDPG, "learning_starts": 50}).settings.first_random_steps == 50
        assert ddpg.Config({**DDPG, "random_steps": 7}).settings.first_random_steps == 7

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"exploration": {"theta": 0.1, "dt": 0.5}}, "theta, dt: no effect without type: ou"),
            (
                {"exploration": {"type": "parameters", "rungs": 4}},
                "rungs: no effect without type: normal or ou",
            ),
            ({"target_noise_clip": 0.1}, "target_noise_clip: no effect without target_noise"),
            (
                {"twin": True, "target_noise": 0.0, "target_noise_clip": 0.1},
                "target_noise_clip: no effect without target_noise",
            ),
        ],
    )
    def test_a_key_without_effect_is_refused(self, ddpg, keys, message):
        with pytest.raises(ValueError, match=message):
            ddpg.Config({**DDPG, **keys})

    @pytest.mark.parametrize(
        "keys",
        [
            {"exploration": {"type": "ou", "theta": 0.1, "dt": 0.5, "rungs": 4}},
            {"exploration": {"rungs": 4}},
            {"target_noise": 0.1, "target_noise_clip": 0.1},
            {"twin": True, "target_noise_clip": 0.1},
        ],
    )
    def test_the_same_keys_are_taken_where_they_have_one(self, ddpg, keys):
        assert ddpg.Config({**DDPG, **keys})

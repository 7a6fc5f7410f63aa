"""Intrinsic rewards beside numpy: ICM's and RND's formulas, and the rollouts that they change."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy_network import NumpyNetwork
from numpy_returns import returns_of
from processes import REPOSITORY
from rollout_samples import random_rollouts

from relaax.algorithm_base import NullMetrics, NullSaver
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.rollouts import ROLLOUTS

pytestmark = pytest.mark.usefixtures("tensorflow")

STATES, ACTIONS, GAMMA, DISCOUNT, WEIGHT = 4, 3, 0.9, 0.97, 2.0

SECTIONS = {
    "icm": {"name": "icm", "features": 5, "hidden_layers": [6], "beta": 0.3, "weight": WEIGHT},
    "rnd": {
        "name": "rnd", "features": 5, "hidden_layers": [6], "gamma": GAMMA, "trace_decay": 0.8,
        "weight": WEIGHT,
    },
}  # fmt: skip


def algorithm_of(name):
    return load_algorithm(REPOSITORY / "algorithms" / name).module


def section_of(part, **keys):
    return {
        "state_size": [STATES], "action_size": ACTIONS, "seed": 3, "episode_len": 5,
        "rewards_gamma": DISCOUNT, "intrinsic": SECTIONS[part], **keys
    }  # fmt: skip


class Parts:
    """The learner of an algorithm with intrinsic rewards, and rollouts for it.

    The first of its ``steps`` give it statistics of observations, the second of returns.
    """

    def __init__(self, name, part, steps=2, **keys):
        algorithm = algorithm_of(name)
        self.config = algorithm.Config(section_of(part, **keys))
        self.process = algorithm.make_learner(self.config, 3)
        self.learner = self.process.learner
        self.networks, self.size = self.config.intrinsic, self.config.network.manifest.size
        dtype = self.config.columns().observation_dtype
        self.rollouts = random_rollouts(self.config.network, ACTIONS, count=4, dtype=dtype)
        if self.config.action_units is not None:
            actions = np.random.default_rng(5).normal(size=(5, 4, 2)).astype(np.float32)
            self.rollouts = replace(self.rollouts, actions=actions)
        for _ in range(steps):
            self.step()

    def step(self):
        steps = list(self.process.steps({ROLLOUTS: self.rollouts}))
        return {name: term for step in steps for name, term in step.terms.items()}

    def vector(self):
        values = self.process.values()["default"]
        return self.config.filters().separated(values)[0]

    def statistics(self):
        values = self.process.values()["default"]
        filters = self.config.filters()
        filters.use(filters.separated(values)[1])
        return filters.others

    def outputs(self, name, states, vector=None):
        """What a network of the part puts out, by numpy: [N, outputs]."""
        own = self.vector()[self.size :] if vector is None else vector
        parts = np.split(own, np.cumsum(self.networks.sizes)[:-1])
        network = self.networks.learnt[name]
        part = dict(zip(self.networks.learnt, parts, strict=True))[name]
        return numpy_outputs(network, part, states)[name]

    def normalized(self, states):
        """States as the networks see them."""
        return np.clip(self.statistics()["intrinsic/"].scaled(states), -5, 5)


def numpy_outputs(network, vector, states):
    weights = NumpyNetwork(network, network.manifest.unpack(vector))
    return weights.forward(np.asarray(states, np.float64), None, np.ones(len(states)))[0]


def one_hot(actions):
    return np.eye(ACTIONS)[actions]


def icm_terms(parts, now, following, actions):
    """The forward and the inverse loss of steps [N], by numpy, from equations (2) to (5)."""
    phi, phi_next = parts.outputs("features", now), parts.outputs("features", following)
    is_discrete = parts.config.action_units is None
    inputs = one_hot(actions) if is_discrete else actions
    guess = parts.outputs("forward", np.concatenate([phi, inputs], axis=1))
    forward = 0.5 * np.square(guess - phi_next).sum(axis=1)
    logits = parts.outputs("inverse", np.concatenate([phi, phi_next], axis=1))
    if not is_discrete:
        return forward, 0.5 * np.square(logits - actions).sum(axis=1)
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return forward, -log_p[np.arange(len(actions)), actions]


@pytest.mark.parametrize("name", ["ppo", "continuous"])
def test_curiosity_pays_the_forward_models_error_of_steps_within_an_episode(name):
    keys = {"filter_states": False}
    if name == "continuous":
        keys |= {"continuous": True, "action_size": 2, "action_low": -1, "action_high": 1}
    parts = Parts("ppo", "icm", **keys)
    batch = parts.rollouts
    counts = (batch.on_policy > 0) & (batch.starts[1:] == 0)
    assert 0 < counts.sum() < batch.on_policy.sum()
    now, following = batch.observations[:-1][counts], batch.observations[1:][counts]
    seen = parts.normalized(now), parts.normalized(following)
    forward, _ = icm_terms(parts, *seen, batch.actions[counts])
    paid = parts.learner.paid(batch).rollouts.rewards
    np.testing.assert_allclose((paid - batch.rewards)[counts], WEIGHT * forward, rtol=1e-4)
    np.testing.assert_array_equal(paid[~counts], batch.rewards[~counts])


@pytest.mark.parametrize("continuous", [False, True])
def test_curiosity_learns_both_of_its_losses(continuous):
    keys = {"learning_rate_schedule": "constant", "filter_states": False, "passes": 1}
    if continuous:
        keys |= {"continuous": True, "action_size": 2, "action_low": -1, "action_high": 1}
    parts = Parts("ppo", "icm", minibatches=1, rollouts_per_batch=4, **keys)
    batch = parts.rollouts
    counts = (batch.on_policy > 0) & (batch.starts[1:] == 0)
    seen = (
        parts.normalized(part[counts]) for part in (batch.observations[:-1], batch.observations[1:])
    )
    forward, inverse = icm_terms(parts, *seen, batch.actions[counts])
    terms = parts.step()
    assert terms["forward loss"] == pytest.approx(0.3 * forward.mean(), rel=1e-4)
    assert terms["inverse loss"] == pytest.approx(0.7 * inverse.mean(), rel=1e-4)
    assert terms["intrinsic reward"] == pytest.approx(forward.mean(), rel=1e-4)


def distilled(parts, following):
    """The squared error of the predictor, by numpy."""
    section = parts.networks.section
    target, fixed = section.target(parts.networks.shapes), parts.learner.part.method.target_vector
    guess = parts.outputs("predictor", following)
    return np.square(guess - numpy_outputs(target, fixed, following)["target"]).sum(axis=1)


def test_distillation_pays_the_predictors_error_of_normalised_states_in_deviations_of_returns():
    """Statistics are those of the batch before; all steps count, and no end of an episode does."""
    parts = Parts("ppo", "rnd", steps=0, filter_states=False, rollouts_per_batch=4)
    batch = replace(parts.rollouts, observations=50 + 9 * parts.rollouts.observations)
    parts.rollouts = batch
    parts.step()
    parts.step()
    states = parts.statistics()["intrinsic/"]
    seen = batch.observations[:-1][batch.valid > 0]
    np.testing.assert_allclose(states.scale.center, seen.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(states.scale.factor, 1 / seen.std(axis=0), rtol=1e-5)
    deviation = 1 / float(np.ravel(parts.statistics()["intrinsic returns"].scale.factor)[0])
    rows = parts.normalized(batch.observations.reshape(-1, STATES))
    values = parts.outputs("value", rows)[:, 0].reshape(6, 4)
    rewards = np.zeros((5, 4))
    steps = batch.valid > 0
    rewards[steps] = distilled(parts, rows.reshape(6, 4, STATES)[1:][steps])
    continues = DISCOUNT * (1 - batch.terminated)
    more = steps * (rewards / deviation + (GAMMA - continues) * values[1:])
    paid = parts.learner.paid(batch)
    np.testing.assert_allclose(paid.rollouts.rewards, batch.rewards + WEIGHT * more, rtol=1e-3)
    for column in range(4):
        raw = returns_of(
            rewards[:, column], np.zeros(5), batch.valid[:, column],
            deviation * values[:, column], GAMMA, 0.8,
        )  # fmt: skip
        np.testing.assert_allclose(paid.returns[:, column], raw / deviation, rtol=1e-3, atol=1e-5)


def test_nothing_is_paid_before_there_are_statistics_of_states_and_of_returns():
    parts = Parts("ppo", "rnd", steps=0, filter_states=False, rollouts_per_batch=4)
    batch = replace(parts.rollouts, observations=np.tile(parts.rollouts.observations, (1, 3, 1)))
    rollouts = {
        name: np.tile(getattr(batch, name), (1, 3))
        for name in ("starts", "rewards", "terminated", "valid", "on_policy", "actions")
    }
    extras = {name: np.tile(part, (1, 3)) for name, part in batch.extras.items()}
    parts.rollouts = replace(
        batch, **rollouts, extras=extras, recurrent_state=np.zeros((2, 12, 0), np.float32),
        versions=np.zeros(12, np.int64),
    )  # fmt: skip
    batch = parts.rollouts
    assert parts.step()["intrinsic reward"] == 0
    paid = parts.learner.paid(batch, is_fresh=False)
    np.testing.assert_array_equal(paid.rollouts.rewards, batch.rewards)
    assert not len(paid.indices[0])
    rows = parts.normalized(batch.observations.reshape(-1, STATES))
    values = parts.outputs("value", rows)[:, 0].reshape(6, 12)
    rewards = np.zeros((5, 12))
    steps = batch.valid > 0
    rewards[steps] = distilled(parts, rows.reshape(6, 12, STATES)[1:][steps])
    returns = [
        returns_of(rewards[:, i], np.zeros(5), batch.valid[:, i], values[:, i], GAMMA, 0.8)
        for i in range(12)
    ]
    assert parts.step()["intrinsic reward"] == pytest.approx(rewards[steps].mean(), rel=1e-3)
    factor = parts.statistics()["intrinsic returns"].scale.factor
    assert 1 / float(factor[0]) == pytest.approx(np.transpose(returns)[steps].std(), rel=1e-3)


def test_advantages_with_such_rewards_are_those_of_both_values_together():
    """An advantage is a discounted sum of temporal differences: those of both kinds, weighed.

    The critic's value is V_E + weight * V_I. Nothing of the environment follows the end of an
    episode; the intrinsic difference goes on with the first state of the next one.
    """
    from relaax.learning.returns_tf import n_step_targets

    parts = Parts("ppo", "rnd", filter_states=False)
    batch = parts.rollouts
    paid = parts.learner.paid(batch)
    rows = parts.normalized(batch.observations.reshape(-1, STATES))
    deviation = 1 / float(np.ravel(parts.statistics()["intrinsic returns"].scale.factor)[0])
    of_part = parts.outputs("value", rows)[:, 0].reshape(6, 4)
    of_environment = np.random.default_rng(2).normal(size=(6, 4))
    values = (of_environment + WEIGHT * of_part).astype(np.float32)
    found = n_step_targets(
        paid.rollouts.rewards, batch.terminated, batch.valid, values, DISCOUNT, 0.8
    )[1]
    rewards = np.zeros((5, 4))
    steps = batch.valid > 0
    rewards[steps] = distilled(parts, rows.reshape(6, 4, STATES)[1:][steps])
    continues = DISCOUNT * (1 - batch.terminated)
    delta = batch.rewards + continues * of_environment[1:] - of_environment[:-1]
    intrinsic = rewards / deviation + GAMMA * of_part[1:] - of_part[:-1]
    expected, following = np.zeros((5, 4)), np.zeros(4)
    for row in reversed(range(5)):
        both = delta[row] + WEIGHT * intrinsic[row]
        following = steps[row] * (both + 0.8 * continues[row] * following)
        expected[row] = following
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("part", ["icm", "rnd"])
@pytest.mark.parametrize("name", ["da3c", "ppo"])
def test_gradients_of_the_part_lie_behind_those_of_the_network(name, part):
    parts = Parts(name, part, learner="process")
    before = parts.vector()
    assert len(before) == parts.size + sum(parts.networks.sizes)
    parts.step()
    changed = parts.vector() != before
    assert changed[: parts.size].any()
    own = np.split(changed[parts.size :], np.cumsum(parts.networks.sizes)[:-1])
    assert all(each.any() for each in own)


@pytest.mark.parametrize("part", ["icm", "rnd"])
def test_a_learner_that_sets_its_values_leaves_the_part_its_own(part):
    keys = {"rollouts_per_batch": 4, "value_minibatches": 2}
    parts, again = Parts("trpo", part, **keys), Parts("trpo", part, steps=0, **keys)
    assert len(parts.vector()) == parts.size
    before = parts.process.state()["intrinsic/parameters"].copy()
    terms = parts.step()
    state = {name: np.copy(array) for name, array in parts.process.state().items()}
    assert (state["intrinsic/parameters"] != before).mean() > 0.3
    assert terms["intrinsic reward"] > 0
    again.process.restore(again.process.converted(state))
    for name, array in again.process.state().items():
        np.testing.assert_array_equal(array, state[name], err_msg=name)


@pytest.mark.parametrize("name", ["natural_gradient", "actor_critic_replay"])
def test_methods_of_others_take_the_section_without_a_line_of_their_own(name):
    module = load_algorithm(REPOSITORY / "tests" / "learning" / name).module
    config = module.Config(section_of("rnd"))
    process, batch = module.make_learner(config, 3), random_rollouts(config.network, ACTIONS, 4)
    extras = {extra: np.zeros((5, 4, 3), np.float32) for extra in config.extras}
    batch = replace(batch, extras={**extras, **batch.extras})
    for _ in range(2):
        steps = list(process.steps(dict.fromkeys(process.inputs, batch)))
    assert steps[-1].terms["intrinsic reward"] > 0
    filters = config.filters()
    filters.use(filters.separated(process.values()["default"])[1])
    assert np.size(filters.others["intrinsic/"].scale.factor) == STATES


def test_statistics_are_of_fresh_rollouts_alone():
    """What is drawn again has been counted when it was new."""
    module = load_algorithm(REPOSITORY / "tests" / "learning" / "actor_critic_replay").module
    config, found = module.Config(section_of("rnd")), []
    batch = random_rollouts(config.network, ACTIONS, 12)
    extras = {extra: np.zeros((5, 12, 3), np.float32) for extra in config.extras}
    batch = replace(batch, extras={**extras, **batch.extras})
    for factor in (1, 9):
        process, filters = module.make_learner(config, 3), config.filters()
        stored = replace(batch, observations=factor * batch.observations)
        for _ in range(3):
            list(process.steps({**dict.fromkeys(process.inputs, stored), ROLLOUTS: batch}))
        filters.use(filters.separated(process.values()["default"])[1])
        found.append({name: each.scale.factor for name, each in filters.others.items()})
    assert found[0]["intrinsic returns"] != 1
    for name, factor in found[0].items():
        np.testing.assert_array_equal(found[1][name], factor, err_msg=name)


def test_what_the_part_has_learnt_is_in_checkpoints_and_in_the_parameter_servers_vector():
    parts, again = Parts("ppo", "rnd"), Parts("ppo", "rnd", seed=4)
    parts.step()
    again.process.restore({name: np.copy(array) for name, array in parts.process.state().items()})
    np.testing.assert_array_equal(again.vector(), parts.vector())
    fixed = [each.learner.part.method.target_vector for each in (parts, again)]
    np.testing.assert_array_equal(*fixed)


@pytest.mark.parametrize(("seed", "target_seed"), [(0, 0), (3, 3), (3, 4), (3, 5)])
def test_no_network_of_the_part_begins_as_another_one_does(seed, target_seed):
    section = {**SECTIONS["rnd"], "target_seed": target_seed}
    parts = Parts("ppo", "rnd", seed=seed, intrinsic=section)
    drawn = np.split(parts.networks.initial(seed), np.cumsum(parts.networks.sizes)[:-1])
    first = [
        part[: STATES * 6].tolist() for part in (*drawn, parts.learner.part.method.target_vector)
    ]
    assert len(first) == 3
    assert all(one != other for one, other in combinations(first, 2))


def test_what_is_often_seen_is_rewarded_less():
    section = {**SECTIONS["rnd"], "learning_rate": 1e-2}
    parts = Parts("ppo", "rnd", intrinsic=section, filter_states=False)
    first = parts.step()["predictor loss"]
    for _ in range(20):
        last = parts.step()["predictor loss"]
    assert last < first / 3


@pytest.mark.parametrize("name", ["da3c", "ppo"])
def test_a_worker_sends_gradients_and_statistics_of_the_part(name):
    algorithm = algorithm_of(name)
    config = algorithm.Config(section_of("rnd", learner="worker", episode_len=5))
    server = algorithm.ParameterServer(config, NullSaver(), NullMetrics()).bridge()
    before = server.get_values().vector
    agent = algorithm.Agent(config, server, 1)
    random = np.random.default_rng(1)
    agent.act(random.normal(size=STATES))
    for _ in range(400):
        agent.reward_and_act(0.0, random.normal(size=STATES))
    after = server.get_values().vector
    size, tail = config.network.manifest.size, config.filters().length
    assert (after[size:-tail] != before[size:-tail]).mean() > 0.5
    filters = config.filters()
    filters.use(filters.separated(after)[1])
    assert np.ravel(filters.others["intrinsic/"].scale.factor) == pytest.approx(np.ones(4), abs=0.2)


def test_named_observations_and_pictures_are_seen_in_their_own_deviations():
    size = {"camera": [20, 20, 1], "speed": [3]}
    parts = Parts("ppo", "icm", state_size=size, rollouts_per_batch=4)
    parts.step()
    found = parts.statistics()
    assert {name: each.width for name, each in found.items()} == {
        "intrinsic/camera": 400, "intrinsic/speed": 3
    }  # fmt: skip
    assert parts.step()["intrinsic reward"] > 0


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"name": "ngu"}, "icm"),
        ({"name": "icm", "trace_decay": 0.9}, "trace_decay: no effect without gamma"),
        ({"name": "rnd", "beta": 0.5}, "beta"),
    ],
)
def test_keys_that_do_not_fit_are_refused(section, expected):
    with pytest.raises(ValueError, match=expected):
        algorithm_of("ppo").Config(section_of("icm", intrinsic=section))


def test_a_checkpoint_of_other_networks_is_not_gone_on_from():
    prints = [
        algorithm_of("ppo").Config(section_of("icm", intrinsic=section)).fingerprint()
        for section in (None, SECTIONS["icm"], SECTIONS["rnd"], {**SECTIONS["icm"], "features": 9})
    ]
    assert "intrinsic" not in prints[0]
    assert len({str(each) for each in prints}) == 4

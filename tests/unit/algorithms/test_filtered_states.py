"""SAC, DDPG, TD3 and DQN with ``filter_states``: acting, learning and evaluation filter alike."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from driven_learner import DrivenLearner
from learning_parts import Driven, Kept
from processes import REPOSITORY
from transition_batches import batch_of

from relaax.algorithm_base import Evaluation, NewValues, NullMetrics, NullSaver
from relaax.assembly.agents import make_actor
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.filters.statistics import unpacked
from relaax.observations import UNNAMED
from relaax.replay.step_batch import StepBatch
from relaax.steps import START, Steps

SIZE, COUNT = 3, 5
SECTION = {
    "state_size": [SIZE], "hidden_layers": [8], "filter_states": True, "seed": 3,
    "learning_starts": 1, "batch_size": COUNT, "updates_per_step": None,
}  # fmt: skip
CONTINUOUS = {**SECTION, "action_size": 1, "random_steps": 0}

CASES = {
    "sac": ("sac", CONTINUOUS),
    "ddpg": ("ddpg", {**CONTINUOUS, "exploration": {"sigma": 0.0}}),
    "td3": ("ddpg", {**CONTINUOUS, "twin": True, "exploration": {"sigma": 0.0}}),
    "dqn": ("dqn", {**SECTION, "action_size": 2, "exploration": {"start": 0, "end": 0}}),
}

#: Positions far away, a time since 1970, and something small.
MEANS, DEVIATIONS = np.array([5.4e6, 1.8e9, 0.0]), np.array([0.3, 2.0, 1e-6])


def states_of(seed, *shape):
    return np.random.default_rng(seed).normal(MEANS, DEVIATIONS, (*shape, SIZE))


def noise_of(name):
    return {"sac": (2, COUNT, 1), "dqn": (COUNT,)}.get(name, (COUNT, 1))


def batch(name, seed, observations=None):
    """Five transitions between states that are far away."""
    random, module = np.random.default_rng(seed), CASES[name][0]
    actions = random.uniform(-0.9, 0.9, (COUNT, 1)).astype(np.float32)
    if module == "dqn":
        actions = random.integers(2, size=COUNT)
    made = batch_of(random, actions, random.normal(size=noise_of(module)).astype(np.float32))
    before, behind = states_of(seed, 2, COUNT) if observations is None else observations
    return type(made)(**{**vars(made), "observations": before, "next_observations": behind})


class Made:
    """An algorithm with its configuration, and what it makes."""

    def __init__(self, name, **keys):
        module, section = CASES[name]
        self.algorithm = load_algorithm(REPOSITORY / "algorithms" / module)
        self.config = self.algorithm.Config({**section, **keys})
        self.plain = self.algorithm.Config({**section, **keys, "filter_states": False})
        server = self.algorithm.ParameterServer(self.config, NullSaver(), NullMetrics())
        self.server = server
        self.bridge = server.bridge()

    def learner(self, seed=3):
        server = self.bridge if self.config.settings.learners else None
        return DrivenLearner(self.algorithm.make_learner(self.config, seed), server)

    def agent(self, kept=None):
        return self.algorithm.make_batch_agent(
            self.config, self.bridge, 1, False, experience=kept or Kept()
        )


def scaled(states, seen):
    """States as a network sees them after all of ``seen`` [N, 3], by numpy alone."""
    return ((states - seen.mean(axis=0)) / seen.std(axis=0)).clip(-10, 10).astype(np.float32)


@pytest.mark.parametrize("name", CASES)
def test_updates_are_those_of_states_that_were_scaled_beforehand(name):
    made, seen = Made(name), np.zeros((0, SIZE))
    filtering = made.learner()
    plain = DrivenLearner(made.algorithm.make_learner(made.plain, 3))
    for seed in range(3):
        raw = batch(name, seed)
        seen = np.concatenate([seen, raw.observations])
        filtering.step({"all": raw})
        pair = [scaled(each, seen) for each in (raw.observations, raw.next_observations)]
        plain.step({"all": batch(name, seed, pair)})
    policy = plain.vector()
    np.testing.assert_allclose(filtering.vector()[: len(policy)], policy, atol=2e-5)
    moments = unpacked(filtering.vector()[len(policy) :])
    expected = [len(seen), *seen.mean(axis=0), *seen.std(axis=0)]
    np.testing.assert_allclose(moments, expected, rtol=1e-6, atol=1e-12)


def test_a_learner_goes_on_with_its_statistics():
    name, made = "dqn", Made("dqn")
    first, again = made.learner(), made.learner(99)
    for seed in range(2):
        first.step({"all": batch(name, seed)})
    again.restore(first.state())
    for each in (first, again):
        each.step({"all": batch(name, 7)})
    np.testing.assert_array_equal(again.vector(), first.vector())


def acted(agent, states):
    """The actions of one step of as many environments as there are states."""
    driven = Driven(agent)
    slots = driven.open(len(states))
    flags = np.full(len(states), START, np.uint8)
    return driven.act(Steps(slots, flags, np.zeros(len(states)), states, states[:0]))


@pytest.mark.parametrize("name", CASES)
def test_actors_and_evaluators_filter_by_what_was_published_and_store_states_as_they_are(name):
    made, seen = Made(name), []
    learner = made.learner()
    for seed in range(3):
        seen.append(batch(name, seed).observations)
        learner.step({"all": batch(name, seed)})
    vector = learner.vector()
    made.bridge.push(NewValues(vector, 3))
    described = made.config.describe_policy(vector)
    states = states_of(11, 16)
    expected = scaled(states, np.concatenate(seen))
    np.testing.assert_allclose(described.scales[UNNAMED].scaled(states), expected, atol=1e-4)
    kept = Kept()
    with closing(made.agent(kept)) as agent:
        actions = acted(agent, states)
        with closing(agent.evaluator(Evaluation.DETERMINISTIC)) as evaluator:
            modes = acted(evaluator, states)
        agent.close_slots(np.arange(len(states)))
    stored = StepBatch.concatenated(kept.rollouts).columns["observation"]
    np.testing.assert_array_equal(stored, states)
    hidden = np.maximum(
        expected @ described.parameters["dense0/kernel"] + described.parameters["dense0/bias"], 0
    )
    outputs = np.concatenate(
        [
            hidden @ described.parameters[f"{head}/kernel"] + described.parameters[f"{head}/bias"]
            for head in described.heads
        ],
        axis=1,
    )
    mode = described.distribution.choose(outputs, np.zeros((len(states), 2), np.float32)[:, :1])
    np.testing.assert_allclose(modes, mode, atol=1e-3)
    if name != "sac":  # which samples
        np.testing.assert_array_equal(actions, modes)


def test_other_policies_act_by_the_statistics_of_the_default_one():
    made = Made("td3")
    learner = made.learner()
    learner.step({"all": batch("td3", 0)})
    vector = learner.vector()
    made.bridge.push(NewValues(vector, 1))
    other = np.zeros_like(vector)
    other[: made.config.network.manifest.size] = vector[: made.config.network.manifest.size]
    made.bridge.push(NewValues(other, 1), policy="other")

    class Builder(made.algorithm.module.Builder):
        def policy(self, seed):
            return replace(super().policy(seed), policy_of=lambda seat: "other")

    with closing(made.agent()) as alone:
        expected = acted(alone, states_of(1, 8))
    agent = make_actor(Builder(made.config), made.bridge, 1, False, Kept())
    with closing(agent):
        np.testing.assert_array_equal(acted(agent, states_of(1, 8)), expected)


def test_statistics_of_an_evaluation_stay_those_of_its_policy():
    made = Made("td3")
    learner = made.learner()
    learner.step({"all": batch("td3", 0)})
    made.bridge.push(NewValues(learner.vector(), 1))
    with closing(made.agent()) as agent, closing(agent.evaluator(Evaluation.DETERMINISTIC)) as each:
        before = acted(each, states_of(1, 8))
        for seed in range(5):
            acted(each, states_of(seed, 8) + 100 * DEVIATIONS)
        np.testing.assert_array_equal(acted(each, states_of(1, 8)), before)


@pytest.mark.parametrize("name", ["sac", "dqn"])
def test_learners_that_share_gradients_merge_what_each_has_seen(name):
    made = Made(name, learners={"count": 2})
    several = [made.learner(seed) for seed in (3, 77)]
    seen = []
    for number in range(3):
        batches = [batch(name, 10 * number + part) for part in range(2)]
        seen += [each.observations for each in batches]
        with ThreadPoolExecutor(2) as threads:
            pairs = zip(several, batches, strict=True)
            for done in [threads.submit(learner.step, {"all": part}) for learner, part in pairs]:
                done.result(60)
    seen = np.concatenate(seen)
    moments = unpacked(made.bridge.pull().vector[-2 * (1 + 2 * SIZE) :])
    expected = [len(seen), *seen.mean(axis=0), *seen.std(axis=0)]
    np.testing.assert_allclose(moments, expected, rtol=1e-6, atol=1e-12)


def test_a_checkpoint_must_agree_on_what_is_filtered():
    made = Made("sac")
    assert made.config.fingerprint() != made.plain.fingerprint()
    assert made.config.fingerprint()["filtered_states"] == {UNNAMED: SIZE}

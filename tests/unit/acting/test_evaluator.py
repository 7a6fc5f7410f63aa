"""The evaluator: one policy for each episode, the mode or samples, and nothing that is kept."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from learning_parts import (
    SMALL_COLUMNS,
    Driven,
    Kept,
    Remembering,
    report,
    small_policy,
    small_values,
    unpack,
)

from relaax.acting.actor import Actor
from relaax.acting.evaluator import EvaluationParts
from relaax.acting.executed_actions import ExecutedActions
from relaax.acting.preprocessor import Preprocessor
from relaax.algorithm_base import EvaluatedPolicy, Evaluation, InvalidState, Values, Version
from relaax.learning.distributions import Categorical
from relaax.learning.filters import Filters
from relaax.learning.filters.statistics import packed
from relaax.learning.rollouts import RolloutStore
from relaax.observations import UNNAMED
from relaax.spaces import discrete
from relaax.steps import EXECUTED, START, TERMINATED


class Source:
    """A parameter server that never has anything new: what is published, a test publishes."""

    def pull(self, known=None, policy="default"):
        return Values(Version(0), 0, None)

    def subscribe(self, sink):
        self.sink = sink


class Evaluating(Driven):
    """An evaluator, and the actor that has made it."""

    def __init__(self, evaluation=Evaluation.DETERMINISTIC, filters=None, **parts):
        self.kept, self.model, self.policy = Kept(), Remembering(), small_policy()
        self.store, self.source = RolloutStore(1, SMALL_COLUMNS), Source()
        self.filters = filters or Filters()
        actor = Actor(
            preprocessor=Preprocessor((2,), filters=self.filters.states),
            policy=self.policy,
            model=self.model,
            distribution=Categorical(2),
            columns=SMALL_COLUMNS,
            rollouts=self.store,
            experience=self.kept,
            random=np.random.default_rng(7),
            executed=ExecutedActions(discrete(2)),
            evaluation=EvaluationParts(
                source=self.source,
                unpack=unpack,
                make_preprocessor=lambda still: Preprocessor((2,), filters=still.states),
                filters=self.filters,
                **parts,
            ),
        )
        self.evaluator = actor.evaluator(evaluation)
        super().__init__(self.evaluator)

    def publish(self, number, seed, global_t=0, tail=(), incarnation=0):
        vector = np.concatenate([small_values(seed=seed).vector, np.float32(tail)])
        version = Version(number, incarnation)
        values = Values(version, global_t, vector.astype(np.float32))
        self.source.sink.publish(values)

    def played_with(self, *slots):
        return self.evaluator.policies(np.array(slots))


STATES = np.random.default_rng(1).normal(size=(64, 2)).astype(np.float32)


def modes(seed, states):
    """What the policy of ``small_values`` with this seed does most probably."""
    arrays = unpack(small_values(seed=seed).vector).arrays
    hidden = np.maximum(states @ arrays["dense0/kernel"] + arrays["dense0/bias"], 0)
    outputs = hidden @ arrays["policy/kernel"] + arrays["policy/bias"]
    return outputs.argmax(axis=1)


@pytest.fixture(name="evaluating")
def _evaluating():
    with closing(Evaluating()) as evaluating:
        yield evaluating


def test_the_mode_is_chosen(evaluating):
    slots = evaluating.open(64)
    actions = evaluating.act(report(slots, [START] * 64, [0.0] * 64, STATES))
    np.testing.assert_array_equal(actions, modes(5, STATES))


def test_samples_are_drawn_if_they_are_asked_for():
    with closing(Evaluating(Evaluation.STOCHASTIC)) as evaluating:
        slots = evaluating.open(64)
        same = np.zeros((64, 2), np.float32)
        actions = evaluating.act(report(slots, [START] * 64, [0.0] * 64, same))
        assert set(actions.tolist()) == {0, 1}


def test_an_episode_keeps_its_policy_while_others_begin_with_newer_ones(evaluating):
    slots = evaluating.open(4)
    evaluating.act(report(slots, [START] * 4, [0.0] * 4, STATES[:4]))
    evaluating.publish(3, seed=8, global_t=300)
    again = [TERMINATED | START, TERMINATED | START, 0, 0]
    assert evaluating.played_with(*slots) == [EvaluatedPolicy(0, 0)] * 4
    for begin in range(0, 64, 4):
        states = STATES[begin : begin + 4]
        flags = again if begin == 0 else [0] * 4
        actions = evaluating.act(report(slots, flags, [0.0] * 4, states))
        np.testing.assert_array_equal(actions[:2], modes(8, states[:2]))
        np.testing.assert_array_equal(actions[2:], modes(5, states[2:]))
    newer, older = EvaluatedPolicy(3, 300), EvaluatedPolicy(0, 0)
    assert evaluating.played_with(*slots) == [newer, newer, older, older]
    assert (modes(5, STATES) != modes(8, STATES)).any()


def test_actions_that_were_executed_change_nothing_and_must_fit(evaluating):
    slots = evaluating.open(2)
    actions = evaluating.act(report(slots, [START] * 2, [0.0] * 2, STATES[:2]))
    flags = [EXECUTED, 0]
    after = evaluating.act(report(slots, flags, [0.0] * 2, STATES[:2], executed=1 - actions[:1]))
    np.testing.assert_array_equal(after, actions)
    with pytest.raises(InvalidState, match="holds 2, which lies above"):
        evaluating.act(report(slots, flags, [0.0] * 2, STATES[:2], executed=[2]))
    assert evaluating.kept.rollouts == []


def test_the_network_is_evaluated_once_for_each_policy(evaluating):
    slots = evaluating.open(4)
    evaluating.act(report(slots, [START] * 4, [0.0] * 4, STATES[:4]))
    evaluating.publish(1, seed=8)
    evaluating.act(report(slots[:1], [TERMINATED | START], [0.0], STATES[:1]))
    evaluating.model.sizes.clear()
    evaluating.act(report(slots, [0] * 4, [0.0] * 4, STATES[:4]))
    assert sorted(evaluating.model.sizes) == [1, 3]


def test_a_version_from_before_a_restart_is_no_version(evaluating):
    slots = evaluating.open(1)
    evaluating.act(report(slots, [START], [0.0], STATES[:1]))
    evaluating.publish(0, seed=5, incarnation=77)
    assert evaluating.played_with(*slots) == [EvaluatedPolicy(None, 0)]


def test_nothing_is_recorded_and_the_learners_own_actor_is_left_alone(evaluating):
    slots = evaluating.open(2)
    evaluating.act(report(slots, [START] * 2, [0.0] * 2, STATES[:2]))
    for _ in range(5):
        evaluating.act(report(slots, [0] * 2, [1.0] * 2, STATES[:2]))
    evaluating.act(report(slots, [TERMINATED] * 2, [1.0] * 2, STATES[:0]))
    evaluating.evaluator.close_slots(slots)
    assert evaluating.kept.rollouts == []
    assert not evaluating.evaluator.learns
    assert not evaluating.kept.is_closed


def statistics(mean, deviation):
    """Statistics of ten rows of two numbers."""
    return packed(np.array([10, mean, mean, deviation, deviation]))


def test_states_are_filtered_by_the_statistics_of_the_episodes_policy_and_gathered_by_none():
    filters = Filters({UNNAMED: 2})
    with closing(Evaluating(filters=filters)) as evaluating:
        slots = evaluating.open(64)
        evaluating.publish(1, seed=5, tail=statistics(mean=0.5, deviation=2.0))
        evaluating.act(report(slots, [START] * 64, [0.0] * 64, STATES))
        evaluating.publish(2, seed=5, tail=statistics(mean=-3.0, deviation=0.1))
        actions = evaluating.act(report(slots, [0] * 64, [0.0] * 64, STATES))
        np.testing.assert_array_equal(actions, modes(5, (STATES - 0.5) / 2.0))
        assert (actions != modes(5, np.clip((STATES + 3.0) / 0.1, -10, 10))).any()
        gathered = [each.take() for each in filters.states.values()]
        assert not np.any(gathered)


def test_an_actor_without_parts_for_it_refuses_in_words():
    actor = Actor(
        preprocessor=Preprocessor((2,)), policy=small_policy(), model=Remembering(),
        distribution=Categorical(2), columns=replace(SMALL_COLUMNS), rollouts=None,
        experience=Kept(), random=np.random.default_rng(7),
    )  # fmt: skip
    with pytest.raises(InvalidState, match="cannot evaluate"):
        actor.evaluator(Evaluation.DETERMINISTIC)

"""The agent of one environment: the seed's interface to an actor."""

import numpy as np
import pytest
from learning_parts import SMALL, SMALL_COLUMNS, Kept, Stored, only, small_policy

from relaax.acting.actor import Actor
from relaax.acting.agent import SingleAgent
from relaax.acting.preprocessor import Preprocessor
from relaax.errors import InvalidState
from relaax.learning.distributions import Categorical
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.rollouts import RolloutStore


@pytest.fixture(name="kept")
def _kept():
    return Kept()


@pytest.fixture(name="stored")
def _stored():
    return Stored()


def actor_of(kept, rollouts, make=Actor):
    distribution = Categorical(2)
    return make(
        preprocessor=Preprocessor((2,), 1),
        policy=small_policy(),
        model=NumpyPolicy(SMALL, distribution),
        distribution=distribution,
        columns=SMALL_COLUMNS,
        rollouts=rollouts,
        experience=kept,
        random=np.random.default_rng(3),
    )


@pytest.fixture(name="actor")
def _actor(kept):
    return actor_of(kept, RolloutStore(3, SMALL_COLUMNS))


@pytest.fixture(name="agent")
def _agent(actor, stored):
    return SingleAgent(actor, stored)


def test_an_unfinished_episode_brings_its_next_state_to_bootstrap_from(agent, kept):
    agent.act([0, 0])
    for number in (1, 2, 3):
        agent.reward_and_act(number / 2, [number, 0])
    (rollout,) = kept.rollouts
    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 2, 3]
    assert only(rollout.rewards) == [0.5, 1.0, 1.5]
    assert only(rollout.valid) == [1, 1, 1]
    assert only(rollout.terminated) == [0, 0, 0]
    assert only(rollout.starts) == [1, 0, 0, 0]


def test_the_rollout_after_it_goes_on_from_that_state(agent, kept):
    agent.act([0, 0])
    for number in range(1, 7):
        agent.reward_and_act(1.0, [number, 0])
    assert kept.rollouts[1].observations[:, 0, 0].tolist() == [3, 4, 5, 6]
    assert only(kept.rollouts[1].starts) == [0, 0, 0, 0]


def test_a_terminated_episode_is_followed_by_the_next_in_the_same_rollout(agent, kept):
    agent.act([0, 0])
    assert agent.reward_and_reset(2.0) == 2.0
    agent.act([1, 0])
    agent.reward_and_act(3.0, [2, 0])
    assert agent.reward_and_reset(4.0) == 7.0
    assert not kept.rollouts
    agent.act([7, 0])
    (rollout,) = kept.rollouts
    assert only(rollout.terminated) == [1, 0, 1]
    assert only(rollout.rewards) == [2, 3, 4]
    assert only(rollout.starts) == [1, 1, 0, 1]


@pytest.mark.parametrize("end", ["reward_and_act", "reward_and_truncate"])
def test_an_episode_that_is_given_up_or_cut_off_was_cut_off_in_its_last_state(agent, kept, end):
    """The state of the last reward_and_act was the last; the action chosen there never happened."""
    agent.act([0, 0])
    getattr(agent, end)(1.0, [1, 0])
    agent.act([9, 0])
    agent.reward_and_act(5.0, [8, 0])
    (rollout,) = kept.rollouts
    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 9, 8]
    assert only(rollout.valid) == [1, 0, 1]
    assert only(rollout.starts) == [1, 0, 1, 0]
    assert only(rollout.terminated) == [0, 0, 0]
    assert rollout.steps == 2


def test_no_action_is_drawn_where_an_episode_was_cut_off(actor, stored):
    seen = []
    act = actor.act
    actor.act = lambda *arguments: seen.append(len(actions := act(*arguments))) or actions
    agent = SingleAgent(actor, stored)
    agent.act([0, 0])
    agent.reward_and_truncate(1.0, [1, 0])
    assert seen == [1, 0]


def test_actions_are_plain_integers(agent):
    actions = [agent.act([0, 0])] + [agent.reward_and_act(1.0, [n, 0]) for n in range(20)]
    assert {type(action) for action in actions} == {int}
    assert set(actions) <= {0, 1}


def test_vectors_of_bytes_and_of_floats_may_follow_each_other(agent):
    agent.act(np.array([0, 255], np.uint8))
    assert agent.reward_and_act(1.0, np.array([0, 1], np.float32)) in (0, 1)


def test_a_state_of_another_type_is_refused(actor, agent, monkeypatch):
    """As images may be of bytes or of floats."""
    monkeypatch.setattr(actor, "check", np.asarray)
    agent.act(np.zeros(2, np.float32))
    with pytest.raises(InvalidState, match="a state of uint8 came after states of float32"):
        agent.reward_and_act(1.0, np.zeros(2, np.uint8))


def test_a_state_that_does_not_fit_is_refused_and_nothing_changes(agent, kept):
    agent.act([0, 0])
    with pytest.raises(InvalidState, match=r"a state has shape \[3\]"):
        agent.reward_and_act(1.0, [1, 2, 3])
    for number in (1, 2, 3):
        agent.reward_and_act(1.0, [number, 0])
    assert only(kept.rollouts[0].valid) == [1, 1, 1]


def test_its_metrics_are_the_parameter_servers_and_its_end_is_the_actors(agent, stored, kept):
    agent.metrics().scalar("found", 3.0)
    assert stored.values == [("found", 3.0)]
    agent.close()
    assert kept.is_closed

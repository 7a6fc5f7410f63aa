"""The actor: choosing actions, and handing rollouts on."""

import numpy as np
import pytest
from actor_parts import InterruptedSteps
from learning_parts import (
    SMALL_COLUMNS,
    Driven,
    Kept,
    Remembering,
    only,
    report,
    small_policy,
    small_values,
)

from relaax.acting.actor import Actor
from relaax.acting.preprocessor import Preprocessor
from relaax.algorithm_base import Values, Version
from relaax.learning.distributions import Categorical
from relaax.learning.rollouts import Columns, RolloutStore
from relaax.learning.steps import StepRecorder
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED

RECURRENT = Columns((2,), np.float32, (), np.int32, recurrent_size=3)


class Acting(Driven):
    """An actor of the small network, what it is made of, and the rollouts that it handed on."""

    def __init__(
        self, learns=True, columns=SMALL_COLUMNS, history_len=1, store=None, kept=None, **values
    ):
        self.kept, self.model, self.policy = kept or Kept(), Remembering(), small_policy()
        self.store = store or RolloutStore(3, columns)
        super().__init__(
            Actor(
                preprocessor=Preprocessor((2,), history_len),
                policy=self.policy,
                model=self.model,
                distribution=Categorical(2),
                columns=columns,
                rollouts=self.store if learns else None,
                experience=self.kept,
                random=np.random.default_rng(7),
                **values,
            )
        )

    @property
    def rollouts(self):
        return self.kept.rollouts


def test_environments_fill_their_rollouts_each_in_its_own_time():
    actor = Acting()
    first, second = actor.open(2).tolist()
    actor.act(report([first, second], [START, START], [0, 0], [[0, 0], [50, 0]]))
    actor.act(report([first], [0], [1], [[1, 0]]))
    actor.act(report([first, second], [0, 0], [2, 20], [[2, 0], [51, 0]]))
    actor.act(report([first], [0], [3], [[3, 0]]))
    actor.act(report([second], [0], [21], [[52, 0]]))
    actor.act(report([second], [0], [22], [[53, 0]]))
    assert [only(rollout.rewards) for rollout in actor.rollouts] == [[1, 2, 3], [20, 21, 22]]
    assert actor.rollouts[1].observations[:, 0, 0].tolist() == [50, 51, 52, 53]


def test_rollouts_that_are_full_at_once_are_handed_on_together():
    actor = Acting()
    slots = actor.open(3)
    actor.act(report(slots, [START] * 3, [0] * 3, [[n, 0] for n in range(3)]))
    for step in range(1, 4):
        actor.act(report(slots, [0] * 3, [step] * 3, [[n, step] for n in range(3)]))
    (rollouts,) = actor.rollouts
    assert rollouts.count == 3
    assert rollouts.steps == 9
    assert rollouts.observations[:, 2].tolist() == [[2, 0], [2, 1], [2, 2], [2, 3]]


def test_a_truncated_episode_and_the_next_start_come_in_one_message():
    actor = Acting()
    slots = actor.open(1)
    actor.act(report(slots, [START], [0], [[0, 0]]))
    actor.act(report(slots, [TRUNCATED | FINAL | START], [4], [[7, 0]], finals=[[1, 0]]))
    actor.act(report(slots, [0], [5], [[8, 0]]))
    (rollout,) = actor.rollouts
    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 7, 8]
    assert only(rollout.valid) == [1, 0, 1]
    assert only(rollout.rewards)[0] == 4
    assert only(rollout.starts) == [1, 0, 1, 0]


def test_a_rollout_that_a_truncation_fills_leaves_no_row_to_the_next():
    actor = Acting()
    slots = actor.open(1)
    actor.act(report(slots, [START], [0], [[0, 0]]))
    actor.act(report(slots, [0], [1], [[1, 0]]))
    actor.act(report(slots, [0], [2], [[2, 0]]))
    actor.policy.publish(small_values(number=1))
    actor.act(report(slots, [TRUNCATED | FINAL | START], [3], [[7, 0]], finals=[[3, 0]]))
    for number in (8, 9, 10):
        actor.act(report(slots, [0], [number], [[number, 0]]))
    first, second = actor.rollouts
    assert first.observations[:, 0, 0].tolist() == [0, 1, 2, 3]
    assert only(first.valid) == [1, 1, 1]
    assert second.observations[:, 0, 0].tolist() == [7, 8, 9, 10]
    assert only(second.valid) == [1, 1, 1]
    assert only(second.starts) == [1, 0, 0, 0]
    assert (first.versions.tolist(), second.versions.tolist()) == ([0], [1])


def test_the_final_observation_of_a_terminated_episode_is_no_row():
    actor = Acting()
    slots = actor.open(1)
    actor.act(report(slots, [START], [0], [[0, 0]]))
    actor.act(report(slots, [TERMINATED | FINAL | START], [4], [[7, 0]], finals=[[1, 0]]))
    actor.act(report(slots, [0], [5], [[8, 0]]))
    actor.act(report(slots, [0], [6], [[9, 0]]))
    assert actor.rollouts[0].observations[:, 0, 0].tolist() == [0, 7, 8, 9]


def test_an_episode_that_is_given_up_was_cut_off_in_its_last_state():
    actor = Acting()
    slots = actor.open(2)
    actor.act(report(slots, [START] * 2, [0] * 2, [[0, 0], [50, 0]]))
    actor.act(report(slots, [0, START], [1, 0], [[1, 0], [60, 0]]))
    for number in (2, 3):
        actor.act(report(slots, [0, 0], [1, 1], [[number, 0], [60 + number, 0]]))
    (rollouts,) = actor.rollouts
    assert rollouts.valid.T.tolist() == [[1, 1, 1], [0, 1, 1]]
    assert rollouts.observations[:, 1, 0].tolist() == [50, 60, 62, 63]


def test_only_those_that_want_an_action_get_one():
    actor = Acting()
    slots = actor.open(3)
    actor.act(report(slots, [START] * 3, [0] * 3, [[0, 0]] * 3))
    ends = [TERMINATED, 0, TRUNCATED | FINAL]
    assert len(actor.act(report(slots, ends, [1] * 3, [[1, 0]], finals=[[2, 0]]))) == 1
    assert len(actor.act(report(slots[:1], [START], [0], [[0, 0]]))) == 1
    assert len(actor.act(report(slots[:1], [TERMINATED], [0], []))) == 0


def test_rollouts_keep_the_actions_and_how_probable_they_were():
    actor = Acting()
    slots = actor.open(1)
    chosen = [actor.act(report(slots, [START], [0], [[0, 1]]))[0]]
    chosen += [actor.act(report(slots, [0], [0], [[n, 1]]))[0] for n in (1, 2, 3)]
    (rollout,) = actor.rollouts
    assert only(rollout.actions) == chosen[:3]
    assert (rollout.extras["log_probability"] < 0).all()


def test_clipped_rewards_are_kept_cut():
    actor = Acting(clip_rewards=True)
    slots = actor.open(1)
    actor.act(report(slots, [START], [0], [[0, 0]]))
    for reward in (10.0, -7.0, 0.5):
        actor.act(report(slots, [0], [reward], [[0, 0]]))
    assert only(actor.rollouts[0].rewards) == [1, -1, 0.5]


def test_rewards_are_kept_scaled_and_cut_after_that():
    actor = Acting(reward_scale=0.1, clip_rewards=True)
    slots = actor.open(1)
    actor.act(report(slots, [START], [0], [[0, 0]]))
    for reward in (20.0, -7.0, 0.5):
        actor.act(report(slots, [0], [reward], [[0, 0]]))
    np.testing.assert_allclose(only(actor.rollouts[0].rewards), [1, -0.7, 0.05], rtol=1e-6)


def test_a_slot_that_is_used_again_remembers_nothing():
    actor = Acting(columns=RECURRENT)
    slots = actor.open(1)
    actor.act(report(slots, [START], [0], [[1, 1]]))
    actor.act(report(slots, [0], [1], [[1, 2]]))
    actor.close_slots(slots)
    assert actor.open(1).tolist() == slots.tolist()
    actor.act(report(slots, [START], [0], [[5, 0]]))
    for number in (1, 2, 3):
        actor.act(report(slots, [0], [number], [[number, 0]]))
    (rollout,) = actor.rollouts
    assert rollout.observations[:, 0, 0].tolist() == [5, 1, 2, 3]
    assert not rollout.recurrent_state.any()


def test_recurrent_state_is_kept_by_environment_and_starts_at_zero_with_each_episode():
    actor = Acting(columns=RECURRENT)
    slots = actor.open(2)
    actor.act(report(slots, [START] * 2, [0] * 2, [[1, 0], [0, 1]]))
    actor.act(report(slots[:1], [0], [0], [[1, 0]]))
    actor.act(report(slots, [0, TERMINATED | START], [0, 1], [[1, 0], [0, 1]]))
    actor.act(report(slots, [0] * 2, [0] * 2, [[1, 0], [0, 1]]))
    for _ in range(4):
        actor.act(report(slots, [0] * 2, [0] * 2, [[1, 0], [0, 1]]))
    # The first environment's two rollouts began after 0 and 3 steps, the second's after 0 and 2.
    assert [only(each.recurrent_state[0]) for each in actor.rollouts] == [[0], [0], [3], [2]]


def test_histories_are_stacked_before_the_network_sees_them():
    columns = Columns((4,), np.float32, (), np.int32)
    actor = Acting(columns=columns, history_len=2)
    actor.model.choose = lambda parameters, observations, *others: seen.append(observations)
    seen, slots = [], actor.open(1)
    with pytest.raises(AttributeError):  # nothing was chosen
        actor.act(report(slots, [START], [0], [[1, 2]]))
    assert seen[0].tolist() == [[1, 2, 1, 2]]


def test_nothing_follows_a_step_whose_handing_over_was_interrupted():
    kept = InterruptedSteps(number=1)
    actor = Acting(store=StepRecorder(SMALL_COLUMNS), kept=kept)
    slots = actor.open(1)
    actor.act(report(slots, [START], [0], [[0, 0]]))
    actor.act(report(slots, [0], [1], [[1, 0]]))
    with pytest.raises(SystemExit):
        actor.act(report(slots, [0], [2], [[2, 0]]))
    actor.close_slots(slots)
    assert kept.column("observation") == [[0, 0]]


def test_where_nothing_learns_nothing_is_kept():
    actor = Acting(learns=False)
    slots = actor.open(2)
    actor.act(report(slots, [START] * 2, [0] * 2, [[1, 0], [0, 1]]))
    ends = [TRUNCATED | FINAL | START, START]
    assert len(actor.act(report(slots, ends, [1] * 2, [[1, 0]] * 2, finals=[[2, 0]]))) == 2
    for _ in range(10):
        assert len(actor.act(report(slots, [0] * 2, [1] * 2, [[1, 0]] * 2))) == 2
    actor.close_slots(slots)
    assert actor.rollouts == []


def test_an_actor_learns_where_rollouts_are_recorded():
    assert Acting(learns=True).agent.learns
    assert not Acting(learns=False).agent.learns


def test_new_values_are_acted_with_at_once():
    actor = Acting()
    vector = np.zeros_like(small_values().vector)
    vector[-2:] = -100, 100
    actor.policy.publish(Values(Version(1), 0, vector))
    slots = actor.open(50)
    assert actor.act(report(slots, [START] * 50, [0] * 50, [[1, 1]] * 50)).tolist() == [1] * 50


def test_a_large_batch_is_cut_into_pieces():
    actor = Acting(learns=False, most_at_once=4)
    observations = np.random.default_rng(0).normal(size=(11, 2)).astype(np.float32) * 100
    actions = actor.act(report(actor.open(11), [START] * 11, [0] * 11, observations))
    assert actions.shape == (11,)
    assert actor.model.sizes == [4, 4, 3]


def test_what_was_warmed_up_for_is_evaluated_at_once():
    actor = Acting(most_at_once=4)
    actor.agent.warm_up(9)
    assert actor.kept.is_warm
    assert actor.model.sizes == [1, 2, 4, 8, 16]
    actor.act(report(actor.open(9), [START] * 9, [0] * 9, [[0, 0]] * 9))
    assert actor.model.sizes[-1] == 9


def test_there_is_no_room_for_more_than_the_memory_holds(monkeypatch):
    actor = Acting()
    actor.open(2)
    grow = actor.store.grow

    def full(capacity):
        raise MemoryError(f"no room for {capacity}")

    monkeypatch.setattr(actor.store, "grow", full)
    with pytest.raises(MemoryError):
        actor.open(1000)
    monkeypatch.setattr(actor.store, "grow", grow)
    second = actor.open(2)
    assert second.tolist() == [2, 3]
    assert len(actor.act(report(second, [START] * 2, [0] * 2, [[0, 0]] * 2))) == 2


def test_the_end_of_an_actor_is_the_end_of_what_learns():
    actor = Acting()
    actor.close()
    assert actor.kept.is_closed

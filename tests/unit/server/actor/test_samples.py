"""Which steps are sent together, and when: seed 002, "Additional specifications"."""

from itertools import count

import numpy as np
import pytest
from actor_parts import KeptSteps

from relaax.configuration.actor_agents import AgentSamples
from relaax.errors import ConfigurationError
from relaax.replay.schema import Column, Schema
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import ABANDONED, FINAL, START, TERMINATED, Storage
from relaax.replay.views import Rollouts
from relaax.server.actor.samples import with_samples

MIDDLE = 0


def episode(length, last=TERMINATED):
    """Flags of an episode of so many rows."""
    return [START, *[MIDDLE] * (length - 2), last]


def send(flags, longest=None, slot=0, versions=None, closes=True, **fields):
    """Deliver steps one by one, as a recorder does; return the samples: rewards of each."""
    kept = KeptSteps()
    sink = with_samples(kept, AgentSamples(**fields), longest, "default")
    versions = versions or [0] * len(flags)
    for number, flag, version in zip(count(1), flags, versions, strict=False):
        sink.put(
            StepBatch(
                np.array([slot]),
                np.array([flag], np.uint8),
                {"reward": np.float32([number]), "version": np.array([version])},
            )
        )
    if closes:
        sink.close()
    return kept.batches


def rewards(samples):
    return [sample.columns["reward"].tolist() for sample in samples]


def flags_of(samples):
    return [sample.flags.tolist() for sample in samples]


def test_without_fields_each_step_is_sent_at_once():
    assert rewards(send(episode(3), closes=False)) == [[1], [2], [3]]


def test_a_sample_has_sample_steps_and_the_bootstrap_steps_behind_it_begin_the_next_one():
    sent = send([*episode(5), *episode(4)], sample_steps=3, bootstrap_steps=2, closes=False)
    assert rewards(sent) == [[1, 2, 3, 4, 5], [6, 7, 8]]


def test_what_is_less_than_a_sample_is_sent_at_the_end():
    assert rewards(send(episode(6), sample_steps=4, bootstrap_steps=0)) == [[1, 2, 3, 4], [5, 6]]


def test_after_done_all_samples_of_an_episode_are_sent_at_its_end():
    flags = episode(5)
    assert send(flags[:-1], sample_steps=2, send_after_done=True, closes=False) == []
    sent = send([*flags, START], sample_steps=2, send_after_done=True, closes=False)
    assert rewards(sent) == [[1, 2], [3, 4], [5]]


def test_a_full_trajectory_is_one_sample():
    sent = send([*episode(3), *episode(4, FINAL)], send_full_trajectory=True)
    assert rewards(sent) == [[1, 2, 3], [4, 5, 6, 7]]


def test_a_padded_trajectory_has_rows_without_action_behind_its_end():
    flags = [*episode(3), *episode(4, FINAL)]
    sent = send(flags, longest=5, send_full_trajectory=True, pad_trajectory=True)
    assert rewards(sent) == [[1, 2, 3, 0, 0, 0], [4, 5, 6, 7, 0, 0]]
    empty = FINAL | ABANDONED
    assert flags_of(sent) == [
        [START, 0, TERMINATED, empty, empty, empty],
        [START, 0, 0, FINAL, empty, empty],
    ]
    assert [sample.actions for sample in sent] == [3, 3]


def test_a_concise_episode_is_its_first_step_with_the_sum_of_rewards():
    sent = send([*episode(3), *episode(4, FINAL)], send_concise_info=True)
    assert rewards(sent) == [[6], [15, 7]]
    assert flags_of(sent) == [[START | TERMINATED], [START, FINAL]]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [[1], [2], [3], [4], [5]]),
        ({"sample_steps": 2}, [[1, 2, 3], [4, 5]]),
        ({"sample_steps": 2, "send_after_done": True}, [[1, 2], [3], [4, 5]]),
        ({"send_full_trajectory": True}, [[1, 2, 3], [4, 5]]),
        ({"send_full_trajectory": True, "pad_trajectory": True}, [[1, 2, 3, 0], [4, 5, 0, 0]]),
        ({"send_concise_info": True}, [[9]]),
    ],
)
def test_an_episode_that_was_abandoned_is_over_but_has_no_whole_sum(fields, expected):
    sent = send([*episode(3, FINAL | ABANDONED), *episode(2)], longest=3, **fields)
    assert rewards(sent) == expected


def batch(slots, numbers, flags):
    return StepBatch(
        np.array(slots), np.array(flags, np.uint8), {"reward": np.array(numbers, np.float32)}
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"sample_steps": 2, "bootstrap_steps": 1},
            {3: [[1, 2, 3], [4, 5]], 7: [[10, 20, 30], [40]]},
        ),
        ({"send_full_trajectory": True}, {3: [[1, 2], [3, 4, 5]], 7: [[10, 20, 30, 40]]}),
    ],
)
def test_slots_in_one_message_have_samples_of_their_own(fields, expected):
    kept = KeptSteps()
    sink = with_samples(kept, AgentSamples(**fields), None, "default")
    sink.put(batch([3, 7, 3, 7], [1, 10, 2, 20], [START, START, TERMINATED, 0]))
    sink.put(batch([7, 3, 3], [30, 3, 4], [0, START, 0]))
    sink.put(batch([3, 7], [5, 40], [TERMINATED, TERMINATED]))
    sink.close()
    found = {3: [], 7: []}
    for sample in kept.batches:
        (slot,) = np.unique(sample.slots).tolist()
        found[slot].append(sample.columns["reward"].tolist())
    assert found == expected


def of_team(*messages, size=2, **fields):
    """Deliver messages of slots, numbers and flags; return slots and rewards of each batch."""
    kept = KeptSteps()
    sink = with_samples(kept, AgentSamples(**fields), None, "default", team_size=size)
    for message in messages:
        sink.put(batch(*message))
    sent = len(kept.batches)
    sink.close()
    told = [(each.slots.tolist(), each.columns["reward"].tolist()) for each in kept.batches]
    return told[:sent], told[sent:]


def test_the_next_episodes_of_a_team_are_sent_together():
    begin = [([0, 1], [1, 10], [START] * 2), ([0, 1], [2, 20], [TERMINATED, 0])]
    assert of_team(*begin, send_full_trajectory=True) == ([], [([0, 0], [1, 2])])
    sent, left = of_team(*begin, ([1], [30], [TERMINATED]), send_full_trajectory=True)
    assert (sent, left) == ([([0, 0, 1, 1, 1], [1, 2, 10, 20, 30])], [])


def test_a_team_of_one_episode_each_may_end_at_the_first_action():
    messages = [([0, 0], [1, 2], [START, TERMINATED]), ([1], [10], [START | TERMINATED])]
    assert of_team(*messages, send_full_trajectory=True) == ([([0, 0, 1], [1, 2, 10])], [])


def test_teams_do_not_wait_for_one_another():
    sent, left = of_team(
        ([0, 1, 2, 3], [1, 10, 5, 50], [START] * 4),
        ([0, 1, 2], [2, 20, 6], [TERMINATED] * 3),
        send_full_trajectory=True,
    )
    assert sent == [([0, 0, 1, 1], [1, 2, 10, 20])]
    assert left == [([2, 2], [5, 6])]


def test_an_agent_that_has_left_keeps_no_other_waiting():
    once = ([0, 1], [1, 10], [START | TERMINATED] * 2)
    sent, left = of_team(([2], [7], [START]), *[once] * 3, size=3, send_full_trajectory=True)
    assert sent == [([0, 1], [1, 10])] * 2
    assert left == [([0, 1], [1, 10])]


def test_a_trajectory_with_two_versions_is_an_error_that_names_both():
    flags = [*episode(2), *episode(3, FINAL)]
    assert len(send(flags, require_one_version=True, versions=[3, 3, 4, 4, 0])) == 5
    message = "a trajectory has steps of versions 4 and 5 of the policy 'default'"
    with pytest.raises(ConfigurationError, match=message):
        send(flags, require_one_version=True, versions=[3, 3, 4, 5, 0])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"send_full_trajectory": True, "sample_steps": 5},
            "sample_steps: no effect with send_full_trajectory",
        ),
        (
            {"send_full_trajectory": True, "send_after_done": True},
            "send_after_done: no effect with send_full_trajectory",
        ),
        ({"pad_trajectory": True}, "pad_trajectory: no effect without send_full_trajectory"),
        ({"bootstrap_steps": 2}, "bootstrap_steps: no effect without pad_trajectory, or sample_st"),
        (
            {"bootstrap_steps": 2, "sample_steps": 5, "send_after_done": True},
            "bootstrap_steps: no effect",
        ),
        (
            {"pad_trajectory": True, "send_full_trajectory": True, "bootstrap_steps": 0},
            "bootstrap_steps: must be 1 or more with pad_trajectory",
        ),
        (
            {"send_concise_info": True, "sample_steps": 5},
            "sample_steps: no effect with send_concise_info",
        ),
        (
            {"send_concise_info": True, "send_full_trajectory": True, "pad_trajectory": True},
            "pad_trajectory: no effect with send_concise_info",
        ),
    ],
)
def test_fields_without_effect_are_refused_by_name(fields, expected):
    with pytest.raises(ValueError, match=expected):
        AgentSamples(**fields)


def test_each_rollout_that_a_trainer_draws_of_padded_trajectories_is_an_episode():
    sent = send(
        [*episode(3), *episode(4, FINAL), *episode(4)],
        longest=4,
        send_full_trajectory=True,
        pad_trajectory=True,
    )
    schema = Schema({"reward": Column(np.dtype(np.float32)), "version": Column(np.dtype(np.int64))})
    storage = Storage(schema, 100)
    for sample in sent:
        storage.append(0, sample.columns, sample.flags)
    view = Rollouts(5)
    rows = np.flatnonzero(storage.serials >= 0)
    starts = rows[view.items(storage, rows)][:2]  # nothing follows the last one
    read = view.read(storage, starts)
    assert read["begins"][0].tolist() == [1, 1]
    assert read["valid"].T.tolist() == [[1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0]]
    assert read["reward"][:3].T.tolist() == [[1, 2, 3], [4, 5, 6]]

"""Populations: whose turn it is, and episodes as a learner of candidates is given them."""

from contextlib import closing

import numpy as np
import pytest
from learning_parts import Driven, Kept
from processes import REPOSITORY

from relaax.algorithm_base import NullMetrics, NullSaver, Version
from relaax.assembly.population import place_in_turn
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.policy import Seat
from relaax.learning.rollouts.labels import POLICY_NAME, POLICY_VERSION, names_in
from relaax.replay.step_batch import StepBatch
from relaax.steps import START, TERMINATED, Steps

SECTION = {
    "state_size": [3], "action_size": 2, "candidates": 10, "longest_episode": 5, "seed": 1
}  # fmt: skip


@pytest.mark.parametrize("environments", [1, 2, 4, 8])
def test_few_environments_play_all_candidates_before_any_comes_again(environments):
    rounds = 8 // environments
    played = [
        place_in_turn(Seat(place, episode=episode), 8)
        for episode in range(rounds)
        for place in range(environments)
    ]
    assert sorted(played) == list(range(8))


def test_turns_go_on_evenly_whatever_the_number_of_candidates_is():
    counts = np.bincount([place_in_turn(Seat(3, episode=n), 10) for n in range(1000)])
    assert len(counts) == 10
    assert counts.min() > 90


@pytest.mark.parametrize("name", ["cem", "es"])
def test_whole_episodes_come_with_the_candidate_that_played_them(name):
    """Two environments: an episode of two steps, of rewards 1 and 2, and a longer one."""
    algorithm = load_algorithm(REPOSITORY / "algorithms" / name)
    config, kept = algorithm.Config({**SECTION, "hidden_layers": []}), Kept()
    bridge = algorithm.ParameterServer(config, NullSaver(), NullMetrics()).bridge()
    agent = algorithm.make_batch_agent(config, bridge, 1, False, experience=kept)
    states = np.ones((2, 3), np.float32)
    with closing(agent):
        driven = Driven(agent)
        slots = driven.open(2)
        for flags, rewards in [([START] * 2, [0, 0]), ([0, 0], [1, 5])]:
            driven.act(Steps(slots, np.uint8(flags), np.float64(rewards), states, states[:0]))
        flags = np.uint8([TERMINATED | START, 0])
        driven.act(Steps(slots, flags, np.float64([2, 5]), states, states[:0]))
    spec = algorithm.replay_spec(config)
    replay = spec.make(np.random.default_rng(1), 60.0)
    replay.open_writer("worker", spec.schema)
    steps = StepBatch.concatenated(kept.rollouts)
    for slot in slots.tolist():
        mine = steps.chosen(steps.slots == slot)
        rows = {column: mine.columns[column] for column in spec.schema.columns}
        replay.append("worker", slot, 0, rows, mine.flags)
    learner = algorithm.make_learner(config, 1)
    ((table, each),) = learner.inputs.items()
    assert replay.table_sizes() == {table: 1}
    batch = each.prepare(replay.sample(table, 1, 0.0))
    took = batch.valid[:, 0] > 0
    assert batch.rewards[took, 0].tolist() == [1, 2]
    assert set(names_in(batch.extras[POLICY_NAME][took, 0])) == {"candidate-0"}
    assert set(batch.extras[POLICY_VERSION][took, 0]) == {0}
    for policy in learner.values():
        learner.published(policy, Version(1))
    (step,) = learner.steps({table: batch})
    assert step.updates == 0, "of an earlier version"


@pytest.mark.parametrize("name", ["cem", "es"])
def test_every_policy_is_published_with_the_statistics_of_filters(name):
    algorithm = load_algorithm(REPOSITORY / "algorithms" / name)
    config = algorithm.Config({**SECTION, "hidden_layers": [], "filter_states": True})
    initial = algorithm.module.Builder(config).parameters().initial
    values = algorithm.make_learner(config, 1).values()
    assert {vector.size for vector in values.values()} == {initial.size}

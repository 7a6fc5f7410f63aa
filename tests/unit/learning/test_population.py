"""Populations: whose turn it is, and episodes as a learner of candidates is given them."""

from contextlib import closing

import numpy as np
import pytest
from learning_parts import Driven, Kept
from processes import REPOSITORY

from relaax.algorithm_base import NullMetrics, NullSaver, Version
from relaax.assembly.population import Turns
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.filters.statistics import unpacked
from relaax.learning.policy import Seat
from relaax.learning.rollouts.labels import POLICY_NAME, POLICY_STAMP, names_in
from relaax.replay.step_batch import StepBatch
from relaax.steps import START, TERMINATED, Steps

SECTION = {
    "state_size": [3], "action_size": 2, "candidates": 10, "longest_episode": 5, "seed": 1
}  # fmt: skip


def test_as_many_episodes_as_there_are_candidates_play_each_once_whoever_begins_them():
    turns, random = Turns([*"abcdefg"]), np.random.default_rng(1)
    played = [turns(Seat(int(place))) for place in random.integers(3, size=70)]
    for first in range(60):
        assert len({*played[first : first + 7]}) == 7


def test_workers_begin_with_candidates_that_are_far_apart():
    names = [*range(16)]
    assert [Turns(names)(Seat(place)) for place in range(5)] == [0, 8, 4, 12, 2]


@pytest.mark.parametrize("name", ["cem", "es"])
def test_an_episode_comes_as_its_return_with_the_candidate_that_played_it(name):
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
    assert (batch.returns.tolist(), batch.steps.tolist()) == ([3], [2])
    assert batch.is_complete.all()
    assert names_in(batch.extras[POLICY_NAME]).tolist() == ["candidate-0"]
    assert batch.extras[POLICY_STAMP].tolist() == [[0, 0]], "nothing was published"
    assert {*spec.schema.columns} == {"reward", "steps", POLICY_NAME, POLICY_STAMP}
    for policy in learner.values():
        learner.published(policy, Version(1))
    (step,) = learner.steps({table: batch})
    assert step.updates == 0, "of no generation"


@pytest.mark.parametrize("name", ["cem", "es"])
def test_every_policy_is_published_with_the_statistics_of_filters(name):
    algorithm = load_algorithm(REPOSITORY / "algorithms" / name)
    config = algorithm.Config({**SECTION, "hidden_layers": [], "filter_states": True})
    initial = algorithm.module.Builder(config).parameters().initial
    values = algorithm.make_learner(config, 1).values()
    assert {vector.size for vector in values.values()} == {initial.size}


@pytest.mark.parametrize("name", ["cem", "es"])
def test_statistics_that_workers_have_gathered_are_published_behind_the_policies(name):
    algorithm = load_algorithm(REPOSITORY / "algorithms" / name)
    config = algorithm.Config({**SECTION, "filter_states": True, "longest_episode": 50})
    kept = Kept()
    bridge = algorithm.ParameterServer(config, NullSaver(), NullMetrics()).bridge()
    agent = algorithm.make_batch_agent(config, bridge, 1, False, experience=kept)
    states = np.random.default_rng(1).normal(5.0, 2.0, (7, 1, 3))
    with closing(agent):
        driven = Driven(agent)
        slots = driven.open(1)
        for number, seen in enumerate(states):
            flags = np.uint8([START if number == 0 else 0])
            driven.act(Steps(slots, flags, np.float64([1]), seen, seen[:0]))
        driven.close_slots(slots)
    (rows,) = kept.rollouts
    assert "observation" not in rows.columns
    learner, sample = algorithm.make_learner(config, 1), drawn(algorithm.replay_spec(config), rows)
    ((table, each),) = learner.inputs.items()
    list(learner.steps({table: each.prepare(sample)}))
    vector = learner.values()["default"]
    moments = unpacked(vector[-config.filters().length :])
    flat = states[:, 0]
    expected = [len(flat), *flat.mean(axis=0), *flat.std(axis=0)]
    np.testing.assert_allclose(moments, expected, rtol=1e-5)


def drawn(spec, steps):
    """Steps of one environment, as they are drawn."""
    replay = spec.make(np.random.default_rng(1), 60.0)
    replay.open_writer("worker", spec.schema)
    rows = {column: steps.columns[column] for column in spec.schema.columns}
    replay.append("worker", 0, 0, rows, steps.flags)
    return replay.sample("episodes", 1, 0.0)

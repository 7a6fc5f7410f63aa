"""Stored steps become the rollouts that a worker would have learnt from itself."""

from dataclasses import replace

import numpy as np
import pytest

from relaax.learning.rollouts import Columns, RolloutBatch, RolloutStore
from relaax.learning.steps import (
    LIKELIHOOD,
    StepRecorder,
    rollouts_in,
    schema_of,
    weighed_rollouts_of,
)
from relaax.replay.limiter import Limiter
from relaax.replay.schema import Column
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.views import Rollouts

LENGTH, SLOTS = 4, np.array([0, 1, 2])

NUMBER = Column(np.dtype(np.float32))

ALONE = Columns((2,), np.float32, (), np.int64, recurrent_size=3)
NAMED = Columns(
    {"camera": (2, 2), "speed": (1,)},
    {"camera": np.uint8, "speed": np.float32},
    (2,),
    np.float32,
    extras={"log_probability": NUMBER, "mean": Column(np.dtype(np.float64), (2,))},
)


class Both:
    """A store of rollouts and a recorder of steps, which are told the same."""

    def __init__(self, columns):
        self.columns = columns
        self.store, self.recorder = RolloutStore(LENGTH, columns), StepRecorder(columns)
        self.rollouts = []
        #: Version and recurrent state by the likelihood of each action.
        self.chosen = {}
        table = TableSpec(Rollouts(LENGTH), "fifo", Limiter())
        spec = ReplaySpec(schema_of(columns), 1024, {"all": table})
        self.replay = spec.make(np.random.default_rng(0), lease_s=1000.0)
        self.replay.open_writer("worker", spec.schema)
        self.next = dict.fromkeys(SLOTS.tolist(), 0)
        self.random = np.random.default_rng(5)
        for each in (self.store, self.recorder):
            each.grow(len(SLOTS))

    def observe(self, method, slots, *more):
        observations = self.observations(len(slots))
        rollouts = getattr(self.store, method)(slots, observations, *more)
        if rollouts is not None:
            self.rollouts += rollouts.pieces(1)
        self.keep(getattr(self.recorder, method)(slots, observations, *more))

    def keep(self, steps):
        for index in range(0 if steps is None else len(steps)):
            one = steps.chosen(np.array([index]))
            slot = int(one.slots[0])
            self.next[slot] = self.replay.append(
                "worker", slot, self.next[slot], one.columns, one.flags
            )

    def act(self, slots, version):
        count, columns = len(slots), self.columns
        state = self.random.normal(size=(2, count, columns.recurrent_size)).astype(np.float32)
        drawn = self.random.integers(0, 9, (count, *columns.action_shape))
        actions = drawn.astype(columns.action_dtype)
        likelihoods = self.random.normal(size=count).astype(np.float32)
        extras = {"log_probability": likelihoods, "mean": self.random.normal(size=(count, 2))}
        for index, likelihood in enumerate(likelihoods.tolist()):
            self.chosen[likelihood] = version, state[:, index]
        for each in (self.store, self.recorder):
            each.record(slots, actions, extras, state, version)

    def drawn_rollouts(self):
        count = self.replay.table_sizes()["all"]
        return rollouts_in(self.replay.sample("all", count, 0.0).columns)

    def observations(self, count):
        zeros = self.columns.observations(count)
        if isinstance(zeros, dict):
            return {name: self.drawn(part) for name, part in zeros.items()}
        return self.drawn(zeros)

    def drawn(self, zeros):
        return self.random.integers(0, 200, zeros.shape).astype(zeros.dtype)


def played(columns, steps=60):
    """Three environments, whose episodes end in all ways, each at its own time."""
    both = Both(columns)
    starts = np.ones(len(SLOTS), bool)
    for step in range(steps):
        both.observe("observe", SLOTS, starts)
        both.act(SLOTS, version=step)
        # How a step ends: 0 goes on, 1 terminated, 2 truncated, 3 given up.
        ends = both.random.choice(4, len(SLOTS), p=[0.7, 0.1, 0.1, 0.1])
        rewards = both.random.normal(size=len(SLOTS)).astype(np.float32)
        answered = ends != 3
        for each in (both.store, both.recorder):
            each.reward(SLOTS[answered], rewards[answered], ends[answered] == 1)
            each.cut_last(SLOTS[ends == 3])
        if (ends == 2).any():
            both.observe("cut_off", SLOTS[ends == 2])
        starts = ends > 0
    return both


def steps_in(rollouts):
    """What each valid step was and led to, by the likelihood of its action, which no other has."""
    found = {}
    observations = rollouts.observations
    parts = observations if isinstance(observations, dict) else {"": observations}
    for row, column in zip(*np.nonzero(rollouts.valid), strict=True):
        goes_on = not rollouts.terminated[row, column]
        found[float(rollouts.extras["log_probability"][row, column])] = {
            "action": rollouts.actions[row, column].tolist(),
            "reward": float(rollouts.rewards[row, column]),
            "starts": float(rollouts.starts[row, column]),
            "goes on": goes_on,
            "extras": {name: part[row, column].tolist() for name, part in rollouts.extras.items()},
            "observed": [part[row, column].tolist() for part in parts.values()],
            "follows": [part[row + 1, column].tolist() for part in parts.values() if goes_on],
        }
    return found


@pytest.mark.parametrize("columns", [ALONE, NAMED], ids=["alone", "named"])
def test_stored_steps_are_those_that_a_worker_would_have_learnt_from(columns):
    both = played(columns)
    stored = steps_in(both.drawn_rollouts())
    learnt = steps_in(RolloutBatch.concatenated(both.rollouts))
    common = stored.keys() & learnt.keys()
    assert len(common) > 100
    assert stored.popitem()[1]["extras"].keys() == columns.extras.keys()
    for likelihood in common & stored.keys():
        assert stored[likelihood] == learnt[likelihood]
    # What only one of them has is in the other's last rollout, which is not full.
    assert len(stored.keys() ^ learnt.keys()) <= len(SLOTS) * LENGTH


def test_a_rollout_has_the_state_before_its_first_action_and_the_version_of_its_oldest():
    both = played(ALONE)
    rollouts = both.drawn_rollouts()
    assert rollouts.recurrent_state.dtype == np.float32
    for column in range(rollouts.count):
        taken = np.flatnonzero(rollouts.valid[:, column])
        chosen = [
            both.chosen[float(rollouts.extras["log_probability"][row, column])] for row in taken
        ]
        assert rollouts.versions[column] == min(version for version, _ in chosen)
        if taken[0] == 0:
            np.testing.assert_array_equal(rollouts.recurrent_state[:, column], chosen[0][1])


def test_where_versions_are_not_stored_each_action_is_the_executed_one():
    both = played(ALONE)
    columns = both.replay.sample("all", 5, 0.0).columns
    rollouts = rollouts_in({n: c for n, c in columns.items() if n not in ("version", "on_policy")})
    np.testing.assert_array_equal(rollouts.on_policy, rollouts.valid)
    assert (rollouts.versions[rollouts.valid.any(axis=0)] == 0).all()


@pytest.mark.parametrize("name", ["action", "version", "flags", "observation/x", "return"])
def test_what_is_recorded_of_a_choice_has_a_name_of_its_own(name):
    columns = Columns((2,), np.float32, (), np.int64, extras={name: NUMBER})
    with pytest.raises(ValueError, match=f"extras: {name}: another column has this name"):
        schema_of(columns)


def test_without_a_recurrent_layer_nothing_is_stored_for_one():
    assert "recurrent_state" not in schema_of(NAMED).columns
    assert played(NAMED, steps=20).drawn_rollouts().recurrent_state.shape[2] == 0


def test_weighed_rollouts_say_how_likely_each_was_drawn():
    sample = played(ALONE).replay.sample("all", 3, 0.0)
    sample = replace(sample, probabilities=np.array([0.1, 0.4, 0.2]), least_probability=0.1)
    likelihoods = weighed_rollouts_of(sample).extras[LIKELIHOOD]
    np.testing.assert_allclose(likelihoods, np.tile([1.0, 4.0, 2.0], (LENGTH, 1)))

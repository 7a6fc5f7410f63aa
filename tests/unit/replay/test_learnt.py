"""Which part of each environment's steps is learnt from, and who is named where none is."""

import numpy as np
import pytest
from replay_cases import SCHEMA, steps

from relaax.replay.counts import LONG_S, LearntSteps
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.views import Rollouts

LABELS = {0: "environment 0 of process 7 of a", 1: "environment 3 of process 8 of b"}


def counted():
    now = [0.0]
    return LearntSteps(lambda: now[0]), now


def test_the_share_of_each_environment_is_that_of_its_own_steps():
    learnt, _ = counted()
    learnt.stored(0, 30)
    learnt.stored(1, 10)
    learnt.learnt(np.array([0, 0, 1]), 10)
    assert learnt.shares(LABELS) == {LABELS[0]: 2 / 3, LABELS[1]: 1.0}


def test_an_environment_that_nothing_is_learnt_from_for_long_is_named_once_a_minute():
    learnt, now = counted()
    for slot in (0, 1):
        learnt.stored(slot, 1024)
    learnt.learnt(np.array([0]), 128)
    assert learnt.complaint(LABELS) is None
    now[0] = LONG_S + 5
    complaint = learnt.complaint(LABELS)
    assert "nothing is learnt from 1 of 2 environments" in complaint
    assert "environment 3 of process 8 of b has delivered 1,024 steps within 65 s" in complaint
    assert learnt.complaint(LABELS) is None
    now[0] += LONG_S
    assert learnt.complaint(LABELS) is not None
    learnt.learnt(np.array([1]), 128)
    now[0] += LONG_S
    assert learnt.complaint(LABELS) is None


def test_while_nothing_is_learnt_no_environment_is_named_and_departed_ones_are_forgotten():
    learnt, now = counted()
    learnt.stored(0, 10)
    now[0] = 10 * LONG_S
    assert learnt.complaint(LABELS) is None
    learnt.stored(1, 10)
    learnt.learnt(np.array([1]), 10)
    learnt.left(0)
    assert learnt.complaint(LABELS) is None
    assert learnt.shares(LABELS) == {LABELS[1]: 1.0}


def test_figures_name_the_environment_by_its_number_in_the_process_that_delivers():
    table = TableSpec(Rollouts(4), "fifo", keeps_undrawn=True)
    replay = ReplaySpec(SCHEMA, 64, {"all": table}).make(np.random.default_rng(0), 60.0)
    replay.open_writer("process 7 of a, 3f0c", SCHEMA)
    replay.append("process 7 of a, 3f0c", 5, 0, *steps(0, 8, end=0))
    replay.sample("all", 1, 0.0)
    assert replay.stats()["learnt share/environment 5 of process 7 of a"] == 0.5


@pytest.mark.parametrize(("history", "burn_in"), [(1, 0), (4, 0), (1, 6)])
def test_a_slow_environment_is_learnt_from_where_items_look_back(history, burn_in):
    """A fast one takes all other places of the storage again and again meanwhile."""
    view = Rollouts(4, burn_in, histories={"observation": history})
    table = TableSpec(view, "fifo", keeps_undrawn=True)
    replay = ReplaySpec(SCHEMA, 60, {"all": table}).make(np.random.default_rng(0), 60.0)
    found, fast = {}, 0
    for name in ("slow", "fast"):
        replay.open_writer(name, SCHEMA)
    for step in range(0, 44, 4):
        replay.append("slow", 0, step, *steps(1000 + step, 4, start=step == 0, end=0))
        for _ in range(20):
            replay.append("fast", 0, fast, *steps(fast, 4, start=fast == 0, end=0))
            fast += 4
            while replay.table_sizes()["all"]:
                columns = replay.sample("all", 1, 0.0).columns
                found[int(columns["action"][burn_in, 0])] = columns
    slow = [number for number in found if number >= 1000]
    assert slow == list(range(1000, 1040, 4))
    for number in slow[2:]:
        columns = found[number]
        frames = columns["observation"][burn_in, 0, ::2]
        np.testing.assert_array_equal(frames, np.arange(number - history + 1, number + 1))
        np.testing.assert_array_equal(
            columns["action"][:burn_in, 0], np.arange(number - burn_in, number)
        )

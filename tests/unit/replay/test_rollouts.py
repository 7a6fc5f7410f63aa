"""Sequences of steps that go on across the ends of episodes."""

import numpy as np
import pytest
from replay_cases import SCHEMA, filled, row_of, steps

from relaax.replay.limiter import Limiter
from relaax.replay.selectors import Queue
from relaax.replay.storage import FINAL, TERMINATED, Storage
from relaax.replay.table import Table
from relaax.replay.views import Rollouts


class Written:
    """A first-in-first-out table of rollouts, and its storage."""

    def __init__(self, view, limiter=None, capacity=256, holds_drawn=False):
        self.storage = Storage(SCHEMA, capacity)
        queue = Queue()
        self.table = Table(self.storage, view, queue, limiter or Limiter(), holds_drawn=holds_drawn)

    def write(self, *arguments, slot=0, **options):
        self.table.appended(slot, self.storage.append(slot, *steps(*arguments, **options)))
        return self

    def may_insert(self, count):
        return not self.table.keeps_out(0, steps(50, count, start=False, end=0)[1])

    def drawn(self):
        return [self.table.draw(1).columns["action"][:, 0].tolist() for _ in range(len(self.table))]


def read(view, storage, *numbers):
    return view.read(storage, np.array([row_of(storage, number) for number in numbers]))


def test_rollouts_cross_the_ends_of_episodes_and_each_begins_where_the_one_before_ends():
    written = Written(Rollouts(4)).write(0, 3).write(3, 6, end=FINAL).write(10, 1, end=0)
    assert written.drawn() == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]]
    written.write(11, 3, start=False, end=0)
    assert written.drawn() == [[8, 9, 10, 11, 12]]


def test_rollouts_may_overlap():
    written = Written(Rollouts(4, overlap=2)).write(0, 9, end=0)
    assert written.drawn() == [[0, 1, 2, 3, 4], [2, 3, 4, 5, 6], [4, 5, 6, 7, 8]]


def test_rollouts_of_each_slot_are_its_own():
    written = Written(Rollouts(2))
    written.write(0, 2, end=0).write(100, 4, end=0, slot=1).write(2, 1, start=False, end=0)
    assert written.drawn() == [[100, 101, 102], [0, 1, 2]]


def test_the_first_known_row_of_an_episode_begins_it_and_a_cut_row_is_no_step():
    storage = filled(steps(0, 2), steps(2, 2, end=FINAL), steps(5, 3, start=False, end=0))
    found = read(Rollouts(7), storage, 0)
    assert found["action"][:, 0].tolist() == list(range(8))
    #: Rows 5 and following are of another episode, whose start was not stored.
    assert np.flatnonzero(found["begins"]).tolist() == [0, 2, 5]
    assert np.flatnonzero(~found["valid"]).tolist() == [4, 7]
    assert np.flatnonzero(found["flags"] & TERMINATED).tolist() == [1]


def test_before_a_rollout_come_rows_of_its_episode():
    storage = filled(steps(0, 3), steps(3, 9, end=0))
    found = read(Rollouts(3, burn_in=2), storage, 6)
    assert found["action"][:, 0].tolist() == [4, 5, 6, 7, 8, 9]
    assert found["valid"][:, 0].tolist() == [False, False, True, True, True, False]
    assert not found["begins"].any()


def test_rows_that_are_missing_before_a_rollout_are_its_first_one_and_begin():
    storage = filled(steps(0, 3), steps(3, 9, end=0))
    found = read(Rollouts(3, burn_in=2), storage, 3, 4)
    assert found["action"].T.tolist() == [[3, 3, 3, 4, 5, 6], [3, 3, 4, 5, 6, 7]]
    assert found["begins"].T.tolist() == [
        [True, True, True, False, False, False],
        [True, True, False, False, False, False],
    ]


def test_a_rollout_that_needs_an_evicted_row_before_it_goes_with_it():
    written = Written(Rollouts(4, burn_in=2), capacity=16)
    written.write(0, 8, end=0).write(8, 8, start=False, end=0)
    assert len(written.table) == 3
    written.write(16, 1, start=False, end=0)
    assert [rows[2] for rows in written.drawn()] == [4, 8, 12]


class TestALimit:
    """Of two rollouts of four steps, which are drawn together."""

    LIMITER = Limiter(min_items=2, max_items=2)

    def test_steps_come_until_as_many_rollouts_are_there_as_are_drawn(self):
        written = Written(Rollouts(4), self.LIMITER).write(0, 8, end=0)
        assert written.may_insert(100)
        written.write(8, 1, start=False, end=0)
        assert not written.may_insert(1)
        written.table.draw(2)
        assert written.may_insert(1)

    def test_while_a_batch_is_worked_on_no_steps_come_if_it_is_held(self):
        written = Written(Rollouts(4), self.LIMITER, holds_drawn=True).write(0, 9, end=0)
        written.table.draw(2)
        assert not written.may_insert(1)
        written.table.let_go()
        assert written.may_insert(1)

    @pytest.mark.parametrize("burn_in", [0, 3])
    def test_drawn_rollouts_are_not_drawn_again(self, burn_in):
        written = Written(Rollouts(4, burn_in), self.LIMITER).write(0, 9, end=0)
        assert not written.table.holds_back(2)
        written.table.draw(2)
        assert written.table.holds_back(2)


def test_a_rollout_goes_with_a_row_behind_it_where_older_rows_stay():
    """Another table of the storage needs some of the rows; the places of the others are taken."""
    written = Written(Rollouts(3), capacity=8).write(0, 8, end=0)
    written.storage.needed[[0, 1, 3]] = True
    written.write(100, 1, end=0, slot=1)  # in the place of step 2
    assert written.drawn() == [[3, 4, 5, 6]]
    written = Written(Rollouts(3), capacity=8).write(0, 8, end=0)
    written.storage.needed[[0, 1, 2, 3]] = True
    written.write(100, 2, end=0, slot=1)
    assert written.drawn() == [[0, 1, 2, 3]]


def test_latest_arrays_of_an_episode_are_side_by_side_if_asked_for():
    storage = filled(steps(0, 3), steps(10, 4, end=0))
    found = read(Rollouts(4, burn_in=1, histories={"observation": 3}), storage, 1)
    assert found["action"][:, 0].tolist() == [0, 1, 2, 10, 11, 12]
    width = storage.columns["observation"].shape[-1]
    assert found["observation"].shape == (6, 1, 3 * width)
    assert found["observation"][:, 0, ::width].tolist() == [
        [0, 0, 0], [0, 0, 1], [0, 1, 2], [10, 10, 10], [10, 10, 11], [10, 11, 12]
    ]  # fmt: skip


def test_a_rollout_goes_with_the_rows_of_its_history():
    written = Written(Rollouts(4, histories={"observation": 3}), capacity=16)
    written.write(0, 8, end=0).write(8, 8, start=False, end=0)
    assert len(written.table) == 3
    written.write(16, 3, start=False, end=0)  # over rows 0 to 2
    assert [rows[0] for rows in written.drawn()] == [8, 12]

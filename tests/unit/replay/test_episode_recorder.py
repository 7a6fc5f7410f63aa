"""Whole episodes in a row each: returns, lengths, labels, and the statistics of filters."""

from dataclasses import replace

import numpy as np
import pytest

from relaax.learning.filters import Filters
from relaax.learning.filters.statistics import unpacked
from relaax.learning.rollouts import Columns
from relaax.learning.rollouts.labels import LABELS, POLICY_NAME, name_column, names_in
from relaax.learning.steps import EpisodeRecorder, EpisodeRows, episode_schema, episodes_of
from relaax.observations import UNNAMED
from relaax.replay.limiter import Limiter
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.storage import ABANDONED, FINAL, START, TERMINATED
from relaax.replay.views import Rows

COLUMNS = Columns((2,), np.float32, (), np.int64, extras={POLICY_NAME: LABELS[POLICY_NAME]})


class Played:
    """A recorder of three environments, and the rows that it has handed over."""

    def __init__(self, longest=100, filters=None):
        self.rows = []
        self.recorder = EpisodeRecorder(COLUMNS, longest, filters or Filters())
        self.recorder.grow(3)

    def keep(self, rows):
        if rows is not None:
            self.rows += zip(
                rows.slots.tolist(),
                rows.flags.tolist(),
                rows.columns["reward"].tolist(),
                rows.columns["steps"].tolist(),
                names_in(rows.columns[POLICY_NAME]).tolist(),
                strict=True,
            )

    def act(self, slots, starts=False, names="one", states=0.0):
        slots = np.array(slots)
        seen = np.broadcast_to(np.float32(states), (len(slots), 2))
        self.keep(self.recorder.observe(slots, seen, starts))
        extras = {POLICY_NAME: name_column([names])}
        self.recorder.record(slots, np.zeros(len(slots)), extras, np.zeros((2, 0, 0)), 0)

    def earn(self, slots, rewards, terminated=False):
        self.recorder.reward(np.array(slots), np.array(rewards), terminated)


def test_an_episode_that_has_ended_is_one_row_with_its_return_and_its_label():
    played = Played()
    played.act([0, 2], True, "first")
    played.earn([0, 2], [1.0, 5.0])
    played.act([0, 2], False, "first")
    played.earn([0, 2], [2.0, 5.0], np.array([True, False]))
    assert played.rows == []
    played.act([0, 2], np.array([True, False]), "second")
    assert played.rows == [(0, START | TERMINATED, 3.0, 2, "first")]
    played.earn([0], [7.0], True)
    played.act([0], True)
    assert played.rows[1:] == [(0, START | TERMINATED, 7.0, 1, "second")]


def test_a_limit_of_time_ends_an_episode_at_once():
    played = Played()
    played.act([1], True)
    played.earn([1], [4.0])
    played.keep(played.recorder.cut_off(np.array([1]), np.zeros((1, 2), np.float32)))
    assert played.rows == [(1, START | FINAL, 4.0, 1, "one")]
    played.act([1], True)
    assert len(played.rows) == 1


def test_the_first_steps_of_a_long_episode_count_and_the_later_ones_with_the_next_row():
    played = Played(longest=2)
    played.act([0], True)
    for number in range(5):
        played.earn([0], [10.0**number])
        played.act([0], False)
    assert played.rows == [(0, START | FINAL, 11.0, 2, "one")]
    played.act([0], True)
    played.earn([0], [3.0], True)
    played.act([0], True)
    assert played.rows[1:] == [(0, START | TERMINATED, 3.0, 4, "one")]


def test_an_episode_that_is_begun_anew_or_left_is_abandoned_and_its_steps_count():
    played = Played()
    played.act([0, 1, 2], True)
    played.earn([0, 1], [1.0, 1.0])
    played.act([0], True)
    played.recorder.cut_last(np.array([1]))
    played.act([1], True)
    abandoned = START | FINAL | ABANDONED
    assert played.rows == [(0, abandoned, 1.0, 1, "one"), (1, abandoned, 1.0, 1, "one")]
    played.earn([0], [2.0])
    played.keep(played.recorder.forget(np.arange(3)))
    assert played.rows[2:] == [(0, abandoned, 2.0, 1, "one")], "the others have not acted"


def test_the_last_steps_of_environments_that_leave_are_counted():
    """One episode is over, the other one has been handed over before."""
    played = Played(longest=2)
    played.act([0, 1], True)
    for _ in range(3):
        played.earn([1], [1.0])
        played.act([1])
    played.earn([0], [5.0], True)
    played.rows.clear()
    played.keep(played.recorder.forget(np.arange(2)))
    assert played.rows == [
        (0, START | TERMINATED, 5.0, 1, "one"),
        (1, START | FINAL | ABANDONED, 2.0, 1, "one"),
    ]


def test_statistics_of_all_states_go_with_the_first_row_and_merge_where_they_arrive():
    filters, merged = Filters({UNNAMED: 2}), Filters({UNNAMED: 2})
    played = Played(filters=filters)
    states = np.arange(8.0)
    for number, state in enumerate(states):
        played.act([0, 1], number == 0, states=state)
        played.earn([0, 1], [1.0, 1.0])
    finals = np.zeros((2, 2), np.float32)
    rows = played.recorder.cut_off(np.array([0, 1]), finals).columns["statistics"]
    assert rows.shape == (2, filters.length)
    assert not rows[1].any()
    total = np.zeros(filters.length, np.float32)
    for row in rows:
        merged.add(row)
    merged.settle(total)
    expected = [16, *[states.mean()] * 2, *[states.std()] * 2]
    np.testing.assert_allclose(unpacked(total), expected, rtol=1e-6)


def test_rows_are_drawn_as_episodes_and_count_their_steps():
    schema = episode_schema(COLUMNS, EpisodeRows(longest=9, statistics=3))
    table = TableSpec(Rows(), "fifo", Limiter(), max_times_sampled=1)
    replay = ReplaySpec(schema, 16, {"episodes": table}).make(np.random.default_rng(1), 60.0)
    replay.open_writer("worker", schema)
    rows = {
        **schema.rows(3), "reward": np.float32([1, 2, 3]), "steps": np.array([10, 20, 5])
    }  # fmt: skip
    flags = np.uint8([START | TERMINATED, START | FINAL, START | FINAL | ABANDONED])
    replay.append("worker", 0, 0, rows, flags)
    assert replay.actions == 35
    episodes = episodes_of(replay.sample("episodes", 3, 0.0))
    assert episodes.returns.tolist() == [1, 2, 3]
    assert episodes.is_complete.tolist() == [True, True, False]
    assert episodes.steps.tolist() == [10, 20, 5]
    assert episodes.statistics.shape == (3, 3)
    assert set(episodes.extras) == {POLICY_NAME}


def test_an_extra_of_each_step_is_refused():
    columns = replace(COLUMNS, extras=Columns((2,), np.float32, (), np.int64).extras)
    with pytest.raises(ValueError, match="extras: log_probability: is chosen in each step"):
        episode_schema(columns, EpisodeRows(longest=9))

"""Batches made of fixed parts of several tables."""

import numpy as np
import pytest
from replay_cases import SCHEMA, steps

from relaax.errors import ConfigurationError
from relaax.replay.limiter import Limiter
from relaax.replay.mixed import Sources, parts_of
from relaax.replay.replay import NotReady
from relaax.replay.specs import MixedSpec, ReplaySpec, TableSpec
from relaax.replay.views import Transitions

FRACTIONS = {"newest": 0.25, "all": 0.75}


def replay_of(fractions=FRACTIONS, kind="uniform", newest=None, others=None):
    tables = {
        "newest": TableSpec(Transitions(), "lifo", newest or Limiter()),
        "all": TableSpec(Transitions(), kind, others or Limiter()),
        "mixed": MixedSpec(fractions),
    }
    spec = ReplaySpec(SCHEMA, 256, tables)
    replay = spec.make(np.random.default_rng(0), lease_s=60)
    replay.open_writer("one", SCHEMA)
    return replay, Sources(spec, dict.fromkeys(("newest", "all"), replay))


def write(replay, first, count):
    rows, flags = steps(first, count)
    replay.append("one", 0, first, rows, flags)


def test_a_batch_has_the_fractions_and_says_where_each_item_is_from():
    replay, source = replay_of()
    write(replay, 0, 50)
    sample = source.sample("mixed", 8, 0)
    np.testing.assert_array_equal(sample.columns["source"], [0, 0, 1, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(sample.columns["action"][:2], [49, 48])
    assert len(sample.keys) == len(sample.probabilities) == 8
    assert sample.items == 100  # of both tables


@pytest.mark.parametrize(
    ("count", "of_newest"), [(1, 0), (2, 1), (3, 1), (5, 1), (7, 2), (100, 25)]
)
def test_the_parts_are_as_near_to_the_fractions_as_whole_numbers_are(count, of_newest):
    parts = parts_of(count, np.array(list(FRACTIONS.values())))
    assert parts.tolist() == [of_newest, count - of_newest]


def test_nothing_is_drawn_until_each_table_is_ready():
    replay, source = replay_of(newest=Limiter(min_items=40))
    write(replay, 0, 30)
    with pytest.raises(NotReady):
        source.sample("mixed", 8, 0)
    write(replay, 30, 30)
    assert len(source.sample("mixed", 8, 0).keys) == 8


def test_a_part_that_was_drawn_before_another_table_was_ready_is_in_the_next_batch():
    replay, source = replay_of(others=Limiter(min_items=40))
    write(replay, 0, 30)
    with pytest.raises(NotReady):
        source.sample("mixed", 8, 0)
    write(replay, 30, 30)
    numbers = source.sample("mixed", 8, 0).columns["action"]
    assert len(numbers) == 8
    assert numbers[:2].tolist() == [29, 28]


def test_a_part_that_was_drawn_for_a_batch_of_another_size_waits_for_that_one():
    replay, source = replay_of(others=Limiter(min_items=40))
    write(replay, 0, 30)
    with pytest.raises(NotReady):
        source.sample("mixed", 8, 0)
    write(replay, 30, 30)
    assert len(source.sample("mixed", 32, 0).keys) == 32
    assert source.sample("mixed", 8, 0).columns["action"][:2].tolist() == [29, 28]


def test_priorities_reach_the_tables_that_have_them():
    replay, source = replay_of(kind="prioritized")
    write(replay, 0, 4)
    sample = source.sample("all", 64, 0)
    keys = np.unique(sample.keys)
    zeros = np.where(np.arange(len(keys)) == 0, 1.0, 0.0)
    assert source.update_priorities("mixed", keys, zeros) == 0
    assert set(replay.sample("all", 32, 0).keys) == {keys[0]}


def test_tables_without_priorities_say_so():
    replay, source = replay_of()
    write(replay, 0, 4)
    with pytest.raises(ValueError, match="have no priorities"):
        source.update_priorities("mixed", np.zeros(1, np.int64), np.ones(1))


@pytest.mark.parametrize(
    ("fractions", "reason"),
    [
        ({"newest": 0.5, "all": 0.4}, "with a sum of 1"),
        ({"newest": 1.5, "all": -0.5}, "must be positive"),
        ({}, "must be positive"),
        ({"newest": 0.5, "oldest": 0.5}, "made of oldest, which is no table"),
    ],
)
def test_fractions_that_make_no_batch_are_refused(fractions, reason):
    with pytest.raises(ConfigurationError, match=reason):
        replay_of(fractions)


def test_draws_are_counted_for_each_table():
    replay, source = replay_of()
    write(replay, 0, 50)
    source.sample("mixed", 8, 0)
    stats = replay.stats()
    assert [stats[f"{name}/drawn"] for name in ("newest", "all")] == [2, 6]

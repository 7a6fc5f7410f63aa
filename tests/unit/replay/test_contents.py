"""A replay that is made of another one's contents goes on as that one would have."""

import json

import numpy as np
import pytest
from replay_cases import SCHEMA, steps

import relaax.replay.replay as replay_module
import relaax.replay.storage as storage_module
from relaax.replay.limiter import Limiter
from relaax.replay.replay import NotReady
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.storage import ENDS, FINAL, START
from relaax.replay.views import Rollouts, Transitions, Windows
from relaax.replay.writers import MissingSteps, UnknownWriter

TABLES = {
    "uniform": TableSpec(Transitions(3, 0.9)),
    "balanced": TableSpec(Transitions(), "balanced"),
    "prioritized": TableSpec(Transitions(stack=2), "prioritized", alpha=0.5),
    "queue": TableSpec(Windows(2), "fifo"),
    "rollouts": TableSpec(Rollouts(4), "fifo"),
    "twice": TableSpec(Transitions(), max_times_sampled=2),
}


class Repeating:
    """In place of a generator, it makes those of tables, which can begin anew."""

    def __init__(self):
        self._made = []

    def spawn(self, count):
        made = [np.random.default_rng() for _ in range(count)]
        self._made += made
        self.begin(5)
        return made

    def begin(self, seed):
        for each in self._made:
            each.bit_generator.state = np.random.default_rng(seed).bit_generator.state


def made(contents=None, lease_s=60.0, tables=TABLES, capacity=512, random=None):
    """A replay of which every second one draws the same numbers."""
    random = random or np.random.default_rng(5)
    replay = ReplaySpec(SCHEMA, capacity, tables).make(random, lease_s)
    if contents is not None:
        replay.restore(contents)
    return replay


def append(replay, first, count, *, environment=0, number=None, start=True, end=0, writer="w"):
    rows, flags = steps(first, count, start=start, end=end)
    number = first if number is None else number
    return replay.append(writer, environment, number, rows, flags)


def filled(random=None):
    """A replay whose pool is full, with two writers in the middle of episodes."""
    replay = made(random=random)
    replay.open_writer("w", SCHEMA)
    replay.open_writer("v", SCHEMA)
    for part in range(30):
        first, is_start = 12 * part, part % 3 == 0
        end = FINAL if part % 3 == 2 else 0
        append(replay, first + part // 3, 12, start=is_start, end=end)
        append(replay, 12 * part, 12, environment=4, start=part == 0, writer="v")
    return replay


def numbers(replay, table, count=64):
    """What is drawn, as all columns of all items."""
    return {key: value.tolist() for key, value in replay.sample(table, count, 0.0).columns.items()}


def slots(replay):
    """Numbers of the steps, and which end episodes, by slot and in order."""
    found, contents = {}, replay.contents()
    serials, slots, flags, actions = (
        contents[f"storage/{name}"] for name in ("serials", "slots", "flags", "column/action")
    )
    for row in np.argsort(serials):
        step = int(actions[row]), bool(flags[row] & ENDS)
        found.setdefault(int(slots[row]), []).append(step)
    return found


def test_steps_episodes_counts_and_writers_are_the_same():
    replay = filled()
    replay.sample("twice", 8, 0.0)
    again = made(replay.contents())
    assert slots(again) == slots(replay)
    expected = replay.stats()
    of_the_process = ("calls", "seconds")
    assert again.stats() == {
        name: value for name, value in expected.items() if not name.endswith(of_the_process)
    }
    assert again.table_sizes() == replay.table_sizes()
    assert len(again) == len(replay)
    assert expected["steps evicted"] > 0


@pytest.mark.parametrize("table", sorted(TABLES))
def test_draws_find_the_same_items_with_the_same_probabilities(table):
    random, of_another = Repeating(), Repeating()
    replay = filled(random)
    keys = replay.sample("prioritized", 32, 0.0).keys
    replay.update_priorities("prioritized", keys, np.arange(32) + 0.5)
    again = made(replay.contents(), random=of_another)
    for other in (replay, again):  # new items have the largest priority that there has been
        append(other, 370, 40, start=False, number=370)
    for number in range(3):
        random.begin(number)
        of_another.begin(number)
        one, two = (other.sample(table, 16, 0.0) for other in (replay, again))
        np.testing.assert_array_equal(one.keys, two.keys)
        np.testing.assert_array_equal(one.probabilities, two.probabilities)
        for name in one.columns:
            np.testing.assert_array_equal(one.columns[name], two.columns[name])


def test_later_steps_make_the_same_items_and_evict_the_same():
    replay = filled()
    again = made(replay.contents())
    for other in (replay, again):
        append(other, 370, 40, start=False, number=370)
        append(other, 360, 30, environment=4, start=False, writer="v")
    assert slots(again) == slots(replay)
    assert again.table_sizes() == replay.table_sizes()
    assert again.stats()["steps lost"] == 0


def test_contents_are_those_of_one_moment_though_all_is_evicted_while_they_are_copied(monkeypatch):
    replay, others = filled(), iter(range(360, 2000, 48))
    before = slots(replay)
    monkeypatch.setattr(storage_module, "BYTES_AT_ONCE", 64 * SCHEMA.bytes)

    def write_meanwhile(seconds):
        first = next(others)
        append(replay, first, 48, start=False)
        append(replay, first, 48, environment=4, start=False, writer="v")

    monkeypatch.setattr(replay_module, "sleep", write_meanwhile)
    again = made(replay.contents())
    monkeypatch.undo()
    assert slots(again) == before
    after = slots(replay)
    assert not set(after[0]) & set(before[0])  # all of it was evicted
    assert slots(made(replay.contents())) == after


def test_steps_that_are_sent_again_are_stored_once():
    replay = made()
    replay.open_writer("w", SCHEMA)
    append(replay, 0, 10)
    again = made(replay.contents())
    assert append(again, 7, 5, start=False) == 12
    assert slots(again) == {0: [(number, False) for number in range(12)]}


def test_a_gap_ends_the_episode_and_is_counted_and_no_window_reaches_across():
    tables = {"all": TableSpec(Windows(2, burn_in=2))}
    replay = made(tables=tables)
    replay.open_writer("w", SCHEMA)
    append(replay, 0, 10)
    again = made(replay.contents(), tables=tables)
    assert append(again, 15, 5, start=False) == 20
    assert slots(again) == {
        0: [(number, number == 9) for number in range(10)],
        1: [(number, False) for number in range(15, 20)],
    }
    assert again.stats()["steps lost"] == 5
    for window in np.moveaxis(again.sample("all", 64, 0.0).columns["action"], 1, 0):
        assert (window < 10).all() or (window >= 15).all()


def test_there_is_one_gap_at_most():
    replay = made()
    replay.open_writer("w", SCHEMA)
    append(replay, 0, 10)
    again = made(replay.contents())
    append(again, 15, 5, start=False)
    with pytest.raises(MissingSteps):
        append(again, 25, 5, start=False)


def test_an_environment_that_came_after_the_save_goes_on_too():
    replay = made()
    replay.open_writer("w", SCHEMA)
    append(replay, 0, 10)
    again = made(replay.contents())
    assert append(again, 40, 5, environment=1, start=False) == 45
    assert again.stats()["steps lost"] == 40


def test_the_episodes_of_writers_that_do_not_come_back_end_after_the_lease():
    replay = made()
    replay.open_writer("w", SCHEMA)
    append(replay, 0, 3)
    again = made(replay.contents(), lease_s=-1.0)
    again.reclaim()
    assert slots(again) == {0: [(0, False), (1, False), (2, True)]}


def test_a_writer_that_comes_back_after_the_lease_of_a_restored_replay_may_have_a_gap():
    replay = made()
    replay.open_writer("w", SCHEMA)
    append(replay, 0, 3)
    again = made(replay.contents(), lease_s=-1.0)
    again.reclaim()
    assert append(again, 5, 2, start=False) == 7
    assert list(slots(again).values()) == [
        [(0, False), (1, False), (2, True)],
        [(5, False), (6, False)],
    ]
    assert again.stats()["steps lost"] == 2


def expired():
    """The contents of a replay whose one writer was silent for longer than its lease."""
    replay = made(lease_s=-1.0)
    replay.open_writer("w", SCHEMA)
    append(replay, 0, 3)
    replay.reclaim()
    return replay.contents()


def test_a_writer_whose_lease_was_over_before_the_save_may_come_back_with_steps_sent_before():
    again = made(expired())
    assert again.stats()["writers"] == 0
    assert append(again, 0, 5) == 5  # it has had no answer for the first three
    assert again.stats()["steps twice"] == 3
    assert list(slots(again).values()) == [
        [(0, False), (1, False), (2, True)],
        [(3, False), (4, False)],
    ]


def test_steps_may_be_missing_before_those_of_a_writer_whose_lease_was_over():
    again = made(expired())
    assert append(again, 5, 2, start=False) == 7
    assert again.stats()["steps lost"] == 2


def test_older_contents_know_nothing_of_writers_whose_lease_was_over():
    contents = expired()
    older = json.loads(contents["writers"].tobytes())
    del older["expired"]
    contents["writers"] = np.frombuffer(json.dumps(older).encode(), np.uint8)
    with pytest.raises(UnknownWriter):
        append(made(contents), 3, 1, start=False)


def test_the_ratio_goes_on():
    tables = {"all": TableSpec(Transitions(), limiter=Limiter(1, None, 1.0, 2.0))}
    replay = made(tables=tables)
    replay.open_writer("w", SCHEMA)
    append(replay, 0, 10)  # nine items: (9 - 1) * 1 + 2 draws
    replay.sample("all", 8, 0.0)
    again = made(replay.contents(), tables=tables)
    again.sample("all", 2, 0.0)
    with pytest.raises(NotReady):
        again.sample("all", 1, 0.0)


def test_an_empty_replay_has_contents_too():
    again = made(made().contents())
    again.open_writer("w", SCHEMA)
    append(again, 0, 5)
    assert slots(again) == {0: [(number, False) for number in range(5)]}


def test_the_contents_are_not_changed_by_later_steps():
    replay = filled()
    contents = replay.contents()
    before = {name: array.copy() for name, array in contents.items()}
    append(replay, 370, 100, start=False)
    replay.sample("twice", 16, 0.0)
    for name, array in before.items():
        np.testing.assert_array_equal(contents[name], array)
    assert before["storage/flags"][0] & START in (0, START)

from collections import Counter

import numpy as np
import pytest
from replay_cases import SCHEMA, row_of, steps
from scipy.stats import chisquare

from relaax.errors import ConfigurationError
from relaax.replay.limiter import Limiter
from relaax.replay.selectors import Balanced, Prioritized, Queue, Uniform
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.storage import FINAL, START, TERMINATED, Storage
from relaax.replay.table import Table
from relaax.replay.views import Episodes, Transitions, Windows


class Written:
    """A table and its storage, with numbered steps."""

    def __init__(self, view=None, kind="uniform", capacity=256, limiter=None, times=None) -> None:
        self.storage = Storage(SCHEMA, capacity)
        generator = np.random.default_rng(0)
        self.selector = {
            "uniform": lambda: Uniform(self.storage.capacity, generator),
            "balanced": lambda: Balanced(
                self.storage.capacity,
                lambda rows: self.storage.columns["action"][rows] < 4,
                generator,
            ),
            "prioritized": lambda: Prioritized(self.storage.capacity, 0.5, generator),
            "fifo": Queue,
            "lifo": lambda: Queue(is_newest_first=True),
        }[kind]()
        self.table = Table(
            self.storage, view or Transitions(), self.selector, limiter or Limiter(), times
        )

    def write(self, *arguments, slot: int = 0, **options) -> "Written":
        self.table.appended(slot, self.storage.append(slot, *steps(*arguments, **options)))
        return self

    def may_insert(self, *arguments, slot: int = 0, **options) -> bool:
        return not self.table.keeps_out(slot, steps(*arguments, **options)[1])

    def numbers(self, count: int) -> list[int]:
        return self.table.draw(count).columns["action"].tolist()


def test_a_step_is_an_item_when_enough_steps_follow_or_its_episode_ends() -> None:
    written = Written(Transitions(steps=3))
    written.write(0, 4, end=0)
    assert set(written.numbers(50)) == {0}

    written.write(4, 2, start=False)

    assert len(written.table) == 6
    assert set(written.numbers(200)) == set(range(6))


def test_steps_of_other_slots_do_not_complete_an_item() -> None:
    written = Written()
    written.write(0, 1, end=0).write(100, 5, end=0, slot=1)

    assert set(written.numbers(100)) == {100, 101, 102, 103}


def test_the_state_where_an_episode_was_cut_off_is_no_item() -> None:
    written = Written().write(0, 3, end=FINAL)

    assert len(written.table) == 3


@pytest.mark.parametrize(("kind", "order"), [("fifo", [0, 1, 2]), ("lifo", [4, 3, 2])])
def test_a_queue_hands_out_each_item_once(kind: str, order: list[int]) -> None:
    written = Written(kind=kind).write(0, 5)

    assert written.numbers(3) == order
    assert len(written.table) == 2


def test_an_item_may_be_retired_after_some_draws() -> None:
    written = Written(times=2).write(0, 10)

    drawn = Counter(
        number for _ in range(16) if len(written.table) for number in written.numbers(1)
    )

    assert max(drawn.values()) <= 2


def test_evicted_steps_are_no_items_any_more() -> None:
    written = Written(capacity=32)
    for first in range(0, 200, 10):
        written.write(first, 10)

    assert min(written.numbers(500)) >= 200 - 32
    assert len(written.table) == len(written.storage)
    counts = written.table.counts
    assert counts.inserted == 200
    assert counts.evicted == 200 - len(written.table)


def test_an_item_that_looks_back_at_an_evicted_step_goes_with_it() -> None:
    written = Written(Transitions(stack=4), capacity=16)
    written.write(0, 8, end=0)
    for first in range(8, 24):
        written.write(first, 1, start=False, end=0)

    sample = written.table.draw(400)

    stacks = sample.columns["observation"][:, :, 0]
    np.testing.assert_array_equal(np.diff(stacks, axis=1), 1)


@pytest.mark.parametrize("view", [Transitions(stack=4), Windows(2, burn_in=3)])
def test_where_the_past_of_an_episode_was_evicted_items_begin_behind_enough_steps(view) -> None:
    written = Written(view, capacity=24, kind="fifo")
    written.write(0, 4, end=0)
    for first in range(100, 140, 8):
        written.write(first, 8, slot=1)
    written.numbers(len(written.table))
    for number in range(4, 8):
        written.write(number, 1, start=False, end=0)
    assert len(written.table) == 0

    written.write(8, 2, start=False).write(10, 2)

    rows = written.selector.contents()["rows"]
    assert written.storage.columns["action"][rows].tolist() == [7, 8, 9, 10, 11]


def test_no_stack_repeats_a_step_that_does_not_start_its_episode() -> None:
    random = np.random.default_rng(0)
    written = Written(Transitions(steps=2, stack=3), capacity=96)
    following = [1000 * slot for slot in range(4)]
    starts = set(following)
    for _ in range(1500):
        slot = int(random.choice(4, p=[0.02, 0.08, 0.4, 0.5]))
        count, ends = int(random.integers(1, 5)), random.random() < 0.1
        is_start = following[slot] in starts
        written.write(following[slot], count, start=is_start, end=TERMINATED * ends, slot=slot)
        following[slot] += count
        if ends:
            starts.add(following[slot])
        if written.table.holds_back(8):
            continue
        for stack in written.table.draw(8).columns["observation"][:, :, 0]:
            repeated = int(np.count_nonzero(np.diff(stack) == 0))
            assert (np.diff(stack)[repeated:] == 1).all()
            assert repeated == 0 or int(stack[0]) in starts


def test_draws_follow_the_priorities() -> None:
    written = Written(kind="prioritized").write(0, 20)
    rows = np.array([row_of(written.storage, number) for number in range(20)])
    keys = rows + written.storage.serials[rows] * written.storage.capacity
    priorities = np.arange(20.0)
    assert written.table.update_priorities(keys, priorities) == 0

    drawn = Counter(number for _ in range(20_000) for number in written.numbers(1))

    expected = np.sqrt(priorities)
    expected *= 20_000 / expected.sum()
    assert drawn[0] == 0
    observed = [drawn[number] for number in range(1, 20)]
    assert chisquare(observed, expected[1:]).pvalue > 0.001


def test_a_sample_says_how_probable_each_item_was() -> None:
    written = Written(kind="prioritized").write(0, 4)
    sample = written.table.draw(100)
    np.testing.assert_allclose(sample.probabilities, 0.25)

    written.table.update_priorities(np.unique(sample.keys), np.array([0.0, 1, 4, 9]))

    sample = written.table.draw(100)
    by_number = dict(
        zip(sample.columns["action"].tolist(), sample.probabilities.tolist(), strict=True)
    )
    assert by_number == pytest.approx({1: 1 / 6, 2: 2 / 6, 3: 3 / 6})


def test_priorities_of_items_that_are_gone_are_ignored_and_counted() -> None:
    written = Written(kind="prioritized", capacity=32).write(0, 8)
    old = written.table.draw(4).keys
    for first in range(10, 100, 10):
        written.write(first, 10)

    assert written.table.update_priorities(old, np.full(4, 1e9)) == 4
    assert written.table.counts.stale_updates == 4
    assert written.table.draw(50).probabilities.max() < 0.1


def test_a_new_item_has_the_largest_priority_so_far() -> None:
    written = Written(kind="prioritized").write(0, 2)
    written.table.update_priorities(np.unique(written.table.draw(50).keys), np.array([16.0, 0.25]))

    written.write(2, 1)

    sample = written.table.draw(400)
    by_number = dict(
        zip(sample.columns["action"].tolist(), sample.probabilities.tolist(), strict=True)
    )
    assert by_number == pytest.approx({0: 4 / 8.5, 1: 0.5 / 8.5, 2: 4 / 8.5})


def test_items_that_all_have_the_priority_0_are_not_drawn_until_another_comes() -> None:
    written = Written(kind="prioritized").write(0, 3)
    keys = np.unique(written.table.draw(50).keys)
    written.table.update_priorities(keys, np.zeros(3))

    assert written.table.holds_back(1)
    state = written.table.state()
    assert (state.items, state.weight, state.allowance) == (3, 0.0, 0.0)

    written.write(3, 1)

    assert not written.table.holds_back(1)
    assert set(written.numbers(50)) == {3}


def test_where_all_priorities_are_0_steps_come_whatever_the_ratio_says() -> None:
    limiter = Limiter(samples_per_insert=1.0, error_buffer=1.0)
    written = Written(kind="prioritized", limiter=limiter).write(0, 3)
    assert not written.may_insert(50, 1, start=False, end=0)

    rows = np.array([row_of(written.storage, number) for number in range(3)])
    keys = rows + written.storage.serials[rows] * written.storage.capacity
    written.table.update_priorities(keys, np.zeros(3))

    assert written.may_insert(50, 1, start=False, end=0)


def test_nothing_is_drawn_before_there_are_enough() -> None:
    written = Written(limiter=Limiter(min_items=5)).write(0, 4)
    assert written.table.holds_back(1)

    written.write(4, 1)

    assert not written.table.holds_back(1)


def test_draws_and_inserts_wait_for_each_other() -> None:
    limiter = Limiter(min_items=10, samples_per_insert=2, error_buffer=4)
    written = Written(limiter=limiter).write(0, 10)
    assert written.may_insert(50, 1, start=False, end=0)
    assert not written.table.holds_back(4)
    assert written.table.holds_back(5)

    written.table.draw(4)

    assert written.table.holds_back(1)
    written.write(10, 4)
    assert written.may_insert(50, 1, start=False, end=0)
    written.write(14, 1)
    assert not written.may_insert(50, 1, start=False, end=0)


@pytest.mark.parametrize("view", [Windows(8, stride=8), Episodes(8), Transitions(steps=8)])
def test_there_are_no_more_items_than_may_be_however_short_episodes_are(view) -> None:
    random = np.random.default_rng(2)
    limiter = Limiter(max_items=16)
    written = Written(view, "fifo", 4096, limiter)
    is_start, refused = [True] * 3, 0
    for _ in range(2000):
        slot, count = int(random.integers(3)), int(random.integers(1, 9))
        rows, flags = steps(
            0, count, start=is_start[slot], end=TERMINATED * (random.random() < 0.5)
        )
        for place in np.flatnonzero(random.random(count - 1) < 0.3):
            flags[place] |= TERMINATED
            flags[place + 1] |= START
        if not written.table.keeps_out(slot, flags):
            written.table.appended(slot, written.storage.append(slot, rows, flags))
            is_start[slot] = bool(flags[-1] & TERMINATED)
        else:
            refused += 1
            written.numbers(min(4, len(written.table)))
        assert len(written.table) <= limiter.max_items
    assert refused < 1500


def test_an_end_completes_the_items_that_wait() -> None:
    written = Written(Transitions(steps=5), limiter=Limiter(max_items=6)).write(0, 8, end=0)
    assert len(written.table) == 3
    assert written.may_insert(8, 3, start=False, end=0)
    assert not written.may_insert(8, 3, start=False, end=TERMINATED)
    assert not written.may_insert(8, 3, end=0)


def test_a_balanced_table_draws_few_items_as_often_as_many_others() -> None:
    """Four of a hundred steps are marked: each is drawn as often as 24 others."""
    written = Written(kind="balanced").write(0, 100)

    counts = Counter(written.numbers(20_000))

    expected = [20_000 / 2 / 4] * 4 + [20_000 / 2 / 96] * 96
    assert chisquare([counts[number] for number in range(100)], expected).pvalue > 0.001


def test_a_balanced_table_knows_how_probable_its_items_were() -> None:
    written = Written(kind="balanced").write(0, 100)

    sample = written.table.draw(50)

    expected = np.where(sample.columns["action"] < 4, 1 / 2 / 4, 1 / 2 / 96)
    np.testing.assert_allclose(sample.probabilities, expected)
    assert sample.least_probability == pytest.approx(1 / 2 / 96)


@pytest.mark.parametrize("first", [0, 4])
def test_a_balanced_table_with_items_of_one_kind_draws_them_alike(first: int) -> None:
    written = Written(kind="balanced").write(first, 4)

    sample = written.table.draw(200)

    assert set(sample.columns["action"].tolist()) == {*range(first, first + 4)}
    np.testing.assert_allclose(sample.probabilities, 1 / 4)


def test_a_balanced_table_forgets_steps_that_are_evicted() -> None:
    written = Written(kind="balanced", capacity=64).write(0, 20).write(100, 64)

    assert len(written.table) == len(written.storage) == 64
    assert min(written.numbers(200)) == 100


@pytest.mark.parametrize("column", ["observation", "rewards"])
def test_a_table_is_not_balanced_by_what_is_no_number_of_a_step(column: str) -> None:
    table = TableSpec(Transitions(), "balanced", balances=column)
    with pytest.raises(ConfigurationError, match=f"balanced by {column}, which is no column"):
        ReplaySpec(SCHEMA, 256, {"all": table})

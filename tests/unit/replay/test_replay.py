"""Steps are stored once and in order, whatever writers send; samples wait until they may come."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic

import numpy as np
import pytest
from replay_cases import SCHEMA, steps

from relaax.replay.limiter import Limiter
from relaax.replay.replay import NotReady, Replay
from relaax.replay.schema import Column, Schema
from relaax.replay.selectors import Prioritized, Queue, Uniform
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.storage import ABANDONED, FINAL, GAP, NONE, START, Storage
from relaax.replay.table import Table
from relaax.replay.views import Transitions
from relaax.replay.writers import MissingSteps, UnknownWriter, Writers


class Case:
    """A replay with one table, and a writer's two environments."""

    def __init__(self, limiter=None, selector="uniform", lease_s=60.0, writer="w"):
        self.storage, random = Storage(SCHEMA, 512), np.random.default_rng(0)
        made = {
            "uniform": lambda: Uniform(512, random),
            "prioritized": lambda: Prioritized(512, 0.6, random),
            "fifo": Queue,
        }[selector]()
        table = Table(self.storage, Transitions(), made, limiter or Limiter())
        self.replay = Replay(self.storage, {"all": table}, Writers(lease_s))
        self.replay.open_writer(writer, SCHEMA)

    def append(self, first, count, *, number=None, environment=0, start=True, end=0, timeout_s=0.0):
        rows, flags = steps(first, count, start=start, end=end)
        number = first if number is None else number
        return self.replay.append("w", environment, number, rows, flags, timeout_s)

    def stored(self):
        rows = np.flatnonzero(self.storage.serials >= 0)
        rows = rows[np.argsort(self.storage.serials[rows])]
        return self.storage.columns["action"][rows].tolist()


def test_actions_that_are_stored_are_told_once_without_the_ends_of_episodes():
    case, told = Case(), []
    case.replay.on_stored(told.append)
    case.append(0, 4, end=FINAL)
    case.append(0, 4, end=FINAL)
    assert told == [4]


def test_steps_that_come_twice_are_stored_once():
    case = Case()
    assert case.append(0, 5) == 5
    assert case.append(0, 5) == 5
    assert case.append(3, 5, start=False) == 8  # three of them are new
    assert case.stored() == list(range(8))
    assert case.replay.stats()["steps twice"] == 7


def test_steps_that_come_too_early_are_refused_with_the_number_that_must_come():
    case = Case()
    case.append(0, 5)
    with pytest.raises(MissingSteps, match="step 5 of environment 0 must come next, not 7"):
        case.append(7, 2, start=False)
    assert case.stored() == list(range(5))


def test_steps_after_a_gap_lie_apart_and_are_stored_once_too():
    case = Case()
    rows, flags = steps(0, 9, end=0)
    flags[[3, 7]] |= GAP
    for first in (0, 0, 5):  # sent again, as a whole and in part
        part = {name: column[first:] for name, column in rows.items()}
        assert case.replay.append("w", 0, first, part, flags[first:]) == 9
    assert case.stored() == list(range(9))
    storage = case.storage
    place = np.argsort(storage.serials)[-9:]
    assert storage.slots[place].tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert storage.flags[place].tolist() == [
        START,
        0,
        FINAL | ABANDONED,
        0,
        0,
        0,
        FINAL | ABANDONED,
        0,
        0,
    ]
    assert case.append(9, 1, start=False) == 10
    assert storage.slots[storage.serials == 9].tolist() == [2]


def test_each_environment_has_numbers_of_its_own():
    case = Case()
    assert case.append(0, 3) == 3
    assert case.append(100, 2, number=0, environment=1) == 2


def test_a_writer_that_is_not_known_is_refused():
    with pytest.raises(UnknownWriter, match="there is no writer 'w'"):
        Case(writer="another").append(0, 1)


def test_the_episode_of_a_writer_that_is_silent_ends():
    case = Case(lease_s=-1.0)
    case.append(0, 3)
    case.replay.reclaim()
    assert case.replay.stats()["writers"] == 0
    assert case.storage.flags[case.storage.newest(0)] & FINAL


def test_steps_that_come_again_after_the_lease_are_stored_once():
    case = Case(lease_s=-1.0)
    case.append(0, 3)
    case.append(100, 2, number=0, environment=1)
    case.replay.reclaim()
    assert case.append(0, 3) == 3
    assert case.append(1, 4, start=False) == 5  # two of them are new
    assert case.append(100, 2, number=0, environment=1) == 2
    assert case.stored() == [0, 1, 2, 100, 101, 3, 4]
    assert case.replay.stats()["steps twice"] == 7
    assert case.replay.stats()["writers"] == 1


def test_an_episode_that_ended_with_the_lease_stays_ended_and_later_steps_are_apart():
    case = Case(lease_s=-1.0)
    case.append(0, 3)
    case.replay.reclaim()
    case.append(3, 2, start=False)
    assert (case.storage.flags[case.storage.newest(0)] & FINAL) != 0
    row = case.storage.newest(1)
    assert case.storage.columns["action"][row] == 4
    assert case.storage.before[case.storage.before[row]] == NONE


def test_a_writer_that_is_opened_again_after_the_lease_has_its_numbers():
    case = Case(lease_s=-1.0)
    case.append(0, 3)
    case.replay.reclaim()
    case.replay.open_writer("w", SCHEMA)
    assert case.append(0, 5) == 5
    assert case.stored() == list(range(5))


@pytest.mark.parametrize(("heard", "drawn"), [(True, 49), (False, 0)])
def test_a_writer_is_as_long_connected_as_it_is_heard_of_and_not_as_it_has_steps(heard, drawn):
    now = [0.0]
    table = TableSpec(Transitions())
    spec = ReplaySpec(SCHEMA, 1000, {"all": table})
    replay = spec.make(np.random.default_rng(0), 60.0, clock=lambda: now[0])
    replay.open_writer("w", SCHEMA)
    for number in range(50):
        replay.append("w", 0, number, *steps(number, 1, start=number == 0, end=0))
        for _ in range(2):
            now[0] += 50.0
            if heard:
                replay.hear_writer("w")
            replay.reclaim()
    assert replay.table_sizes() == {"all": drawn}


def test_of_expired_writers_the_last_ones_are_remembered():
    writers = Writers(lease_s=-1.0, most_expired=2)
    for name in "abc":
        writers.open(name)
        writers.slot(name, 0).next_step = 5
        writers.expired()
    with pytest.raises(UnknownWriter):
        writers.slot("a", 0)
    assert [writers.slot(name, 0).next_step for name in "bc"] == [5, 5]


def test_of_a_writer_that_is_closed_after_the_lease_nothing_is_left():
    case = Case(lease_s=-1.0)
    case.append(0, 3)
    case.replay.reclaim()
    case.replay.close_writer("w")
    with pytest.raises(UnknownWriter):
        case.append(3, 1, start=False)


def test_an_episode_that_begins_anew_ends_the_one_before():
    case = Case()
    case.append(0, 3)
    case.append(3, 2)
    flags = case.storage.flags[:5]
    assert (flags & FINAL != 0).tolist() == [False, False, True, False, False]
    assert case.replay.table_sizes() == {"all": 3}  # 0 and 1, and 3: nothing was done in 2


def test_an_episode_that_begins_in_the_middle_of_a_message_ends_the_one_before():
    case = Case()
    rows, flags = steps(0, 6)
    flags[3] |= START  # after steps that were dropped
    case.replay.append("w", 0, 0, rows, flags)
    assert (case.storage.flags[:6] & FINAL != 0).tolist() == [
        False, False, True, False, False, False,
    ]  # fmt: skip


def test_steps_that_come_again_while_they_wait_are_stored_once():
    case = Case(Limiter(min_items=1, samples_per_insert=1.0, error_buffer=1.0))
    case.append(0, 10)
    with ThreadPoolExecutor(2) as threads:
        waiting = [
            threads.submit(case.append, 10, 5, start=False, timeout_s=10.0) for _ in range(2)
        ]
        for _ in range(20):
            with suppress(NotReady):
                case.replay.sample("all", 1, 0.05)
        assert [each.result() for each in waiting] == [15, 15]
    assert case.stored() == list(range(15))
    assert case.replay.stats()["steps twice"] == 5


def test_columns_that_differ_are_named_when_a_writer_is_opened():
    other = Schema({**SCHEMA.columns, "reward": Column(np.dtype(np.float64))})
    assert Case().replay.open_writer("x", other) == [
        "column 'reward' is float64 [], and must be float32 []"
    ]


def test_samples_wait_until_there_are_enough_items():
    case = Case(Limiter(min_items=4))
    case.append(0, 4)
    with pytest.raises(NotReady, match="3 of the 4 items with which learning begins have come"):
        case.replay.sample("all", 2, 0.01)  # the last one's successor has not come
    case.append(4, 1, start=False)
    assert len(case.replay.sample("all", 2, 0.01).keys) == 2


def test_a_batch_of_items_that_are_drawn_once_waits_for_all_of_them_and_says_how_many_are_there():
    case = Case(Limiter(min_items=1), selector="fifo")
    case.append(0, 4)
    with pytest.raises(NotReady, match="3 of the 4 items of a batch are complete"):
        case.replay.sample("all", 4, 0.0)


def test_with_a_ratio_draws_and_insertions_wait_for_each_other():
    case = Case(Limiter(min_items=1, samples_per_insert=2.0, error_buffer=4.0))
    case.append(0, 4)  # three items
    for _ in range(4):
        case.replay.sample("all", 2, 0.0)  # (3 - 1) * 2 - 8 = -4
    behind = "steps are behind the updates: 3 items have come, 8 draws were made of them, and 2"
    with pytest.raises(NotReady, match=behind):
        case.replay.sample("all", 2, 0.0)
    case.append(4, 20, start=False)
    behind = "updates are behind the steps: 8 draws were made, and 44 are due for the 23 items"
    with pytest.raises(NotReady, match=behind):
        case.append(24, 1, start=False)
    for _ in range(18):
        case.replay.sample("all", 2, 0.0)
    assert case.append(24, 1, start=False) == 25


def test_when_learning_has_ended_no_writer_waits_and_nothing_is_stored():
    case = Case(Limiter(min_items=1, samples_per_insert=1.0, error_buffer=1.0))
    case.append(0, 10)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(case.append, 10, 5, start=False, timeout_s=10.0)
        case.replay.end()
        assert waiting.result(5.0) == 15
    assert case.append(15, 5, number=10, start=False) == 15
    assert case.append(15, 5, start=False) == 20
    assert case.append(20, 5, start=False) == 25
    assert case.replay.stats()["steps dropped"] == 20
    assert case.stored() == list(range(10))
    assert case.replay.actions == 10


def test_more_steps_at_once_than_the_ratio_allows_ahead_are_taken_when_it_holds():
    case = Case(Limiter(min_items=1, samples_per_insert=1.0, error_buffer=1.0))
    assert case.append(0, 100) == 100


@pytest.mark.parametrize("priorities", [[-1.0], [np.nan], [np.inf]])
def test_a_priority_is_finite_and_not_negative(priorities):
    case = Case(selector="prioritized")
    with pytest.raises(ValueError, match="priorities must be finite, and at least 0"):
        case.replay.update_priorities("all", np.array([0]), np.array(priorities))


def test_priorities_of_items_that_are_gone_are_counted():
    case = Case(selector="prioritized")
    case.append(0, 3)
    keys = case.replay.sample("all", 1, 0.0).keys
    assert case.replay.update_priorities("all", keys, np.array([2.0])) == 0
    assert case.replay.update_priorities("all", keys + 512, np.array([2.0])) == 1
    assert case.replay.stats()["all/stale_updates"] == 1


def test_steps_that_are_older_than_they_may_be_are_evicted_with_their_items():
    case = Case()
    case.append(0, 100)
    case.replay.evict(older_than_s=1000.0)
    assert case.replay.table_sizes() == {"all": 99}
    case.replay.evict(older_than_s=-1.0)
    assert case.replay.table_sizes() == {"all": 0}
    assert case.replay.stats()["steps evicted"] == 100
    assert case.append(100, 5) == 105


def test_a_watch_ends_when_as_many_may_be_drawn():
    case = Case(Limiter(min_items=4))
    with ThreadPoolExecutor(1) as threads:
        watch = threads.submit(case.replay.watch, "all", 1.0, 10.0)
        case.append(0, 5)
        state = watch.result(5.0)
    assert (state.table.items, state.table.weight, state.table.allowance) == (4, 4.0, np.inf)
    assert (state.steps, state.actions) == (5, 5)


def test_a_watch_ends_in_time_and_says_that_nothing_may_be_drawn():
    case = Case(Limiter(min_items=4))
    case.append(0, 2)
    state = case.replay.watch("all", 1.0, 0.01)
    assert (state.table.items, state.table.weight, state.table.allowance) == (1, 0.0, 0.0)


def test_draws_may_cost_more_or_less_than_they_are():
    case = Case(Limiter(min_items=1, samples_per_insert=1.0, error_buffer=2.0))
    case.append(0, 10)  # (9 - 1) * 1 + 2 draws
    case.replay.sample("all", 100, 0.0, charge=4)
    case.replay.sample("all", 0, 0.0, charge=6)
    with pytest.raises(NotReady):
        case.replay.sample("all", 1, 0.0)
    assert len(case.replay.sample("all", 3, 0.0, charge=0).keys) == 3


def test_items_that_are_drawn_once_are_not_drawn_before_there_are_enough():
    case = Case(selector="fifo")
    case.append(0, 4)
    with pytest.raises(NotReady):
        case.replay.sample("all", 4, 0.0)
    assert len(case.replay.sample("all", 3, 0.0).keys) == 3


def test_the_newest_steps_are_there_exactly_however_many_environments_make_them():
    replay = replay_of(1000)
    for number in range(100):
        for environment in range(16):
            rows, flags = steps(100 * environment + number, 1, start=number == 0, end=0)
            replay.append("w", environment, number, rows, flags)
    assert len(replay) == 1000
    assert replay.table_sizes() == {"all": 1000 - 16}  # what the newest of each led to will come


def test_learning_begins_when_so_many_items_have_come_whatever_is_left_of_them():
    replay = replay_of(40, Limiter(min_items=40))
    for first in range(0, 40, 10):
        with pytest.raises(NotReady):
            replay.sample("all", 1, 0.0)
        replay.append("w", 0, first, *steps(first, 10, start=first == 0, end=0))
    replay.append("w", 0, 40, *steps(40, 1, start=False))
    assert replay.table_sizes() == {"all": 40}
    replay.evict(older_than_s=-1.0)
    replay.append("w", 0, 41, *steps(41, 1))
    assert len(replay.sample("all", 3, 0.0).keys) == 3


def test_more_steps_than_are_stored_come_in_parts():
    replay = replay_of(40)
    assert replay.append("w", 0, 0, *steps(0, 4096)) == 4096
    assert len(replay) == 40


def test_an_environment_too_many_of_one_writer_is_dropped_and_named_and_the_others_go_on(caplog):
    replay = replay_of(40, view=Transitions(4))
    for environment in range(9):
        assert replay.append("w", environment, 0, *steps(0, 3, end=0)) == 3
    assert replay.stats()["steps dropped"] == 3
    (line,) = caplog.messages
    assert "nothing is learnt from environment 8 of w: 40 steps are stored here, of 9" in line
    assert "45 are needed at least; raise replay_size" in line
    assert replay.append("w", 0, 3, *steps(3, 3, start=False)) == 6
    assert replay.append("w", 8, 3, *steps(3, 3, start=False)) == 6
    assert (replay.most_environments, replay.stats()["steps dropped"]) == (8, 6)


def test_a_server_that_was_started_again_waits_until_its_predecessor_counts_no_more(caplog):
    now, waits = [0.0], "of 9 environments, whose steps would be gone"
    replay = replay_of(40, view=Transitions(4), clock=lambda: now[0])
    play_8(replay, "w")
    now[0] = 5.0
    replay.open_writer("again", SCHEMA)
    with pytest.raises(NotReady, match=waits):
        replay.append("again", 0, 0, *steps(0, 3, end=0))
    now[0] = replay.lease_s / 2 + 1
    play_8(replay, "again")
    assert (replay.stats()["steps dropped"], caplog.messages) == (0, [])


def test_one_client_more_plays_without_being_learnt_from_until_another_one_leaves(caplog):
    now = [0.0]
    replay = replay_of(40, view=Transitions(4), clock=lambda: now[0])
    play_8(replay, "w")
    replay.open_writer("more", SCHEMA)
    with pytest.raises(NotReady, match="of 9 environments"):
        replay.append("more", 0, 0, *steps(0, 3, end=0))
    now[0] = replay.lease_s / 2 + 1
    replay.hear_writer("w")
    assert replay.append("more", 0, 0, *steps(0, 3, end=0)) == 3
    assert "environment 0 of more" in caplog.text
    replay.close_writer("w")
    assert replay.append("more", 0, 3, *steps(3, 3, start=False)) == 6
    assert (replay.stats()["steps dropped"], replay.stored) == (3, 8 * 3 + 3)


def play_8(replay, writer):
    for environment in range(8):
        replay.append(writer, environment, 0, *steps(0, 3, end=0))


def replay_of(capacity, limiter=None, view=None, clock=monotonic):
    table = TableSpec(view or Transitions(), limiter=limiter or Limiter())
    spec = ReplaySpec(SCHEMA, capacity, {"all": table})
    replay = spec.make(np.random.default_rng(0), 60.0, clock)
    replay.open_writer("w", SCHEMA)
    return replay


@pytest.mark.parametrize("of", [1, 3])
def test_the_shares_of_servers_make_up_the_whole(of):
    limiter = Limiter(min_items=30, max_items=90, samples_per_insert=2.0, error_buffer=60.0)
    whole = ReplaySpec(SCHEMA, 900, {"all": TableSpec(Transitions(), limiter=limiter)})
    share = whole.share(of)
    assert share.capacity * of == 900
    part = share.tables["all"].limiter
    assert (part.min_items * of, part.max_items * of, part.error_buffer * of) == (30, 90, 60.0)
    assert part.samples_per_insert == 2.0


def test_a_share_has_room_for_one_insertion_at_least():
    whole = Limiter(min_items=2, samples_per_insert=4.0, error_buffer=4.0)
    assert whole.share(8) == Limiter(min_items=1, samples_per_insert=4.0, error_buffer=4.0)

import numpy as np
import pytest
from replay_cases import SCHEMA, filled, row_of, steps

from relaax.replay import storage as storage_module
from relaax.replay.array_bytes import named
from relaax.replay.storage import FINAL, NONE, START, Storage


def chain(storage: Storage, slot: int = 0) -> list[int]:
    """The actions in a slot, from its newest row back."""
    found, row = [], storage.newest(slot)
    while row != NONE:
        found.append(int(storage.columns["action"][row]))
        row = int(storage.before[row])
    return found[::-1]


def test_steps_follow_each_other_across_calls() -> None:
    storage = filled(steps(0, 5), steps(5, 20))

    assert chain(storage) == list(range(25))


def test_slots_do_not_mix() -> None:
    storage = Storage(SCHEMA, 64)
    for part in range(4):
        for slot in range(3):
            rows, flags = steps(100 * slot + 3 * part, 3, start=part == 0, end=0)
            storage.append(slot, rows, flags)

    for slot in range(3):
        assert chain(storage, slot) == [100 * slot + number for number in range(12)]


def test_the_oldest_steps_make_room_for_new_ones() -> None:
    storage = filled(*(steps(10 * number, 10) for number in range(10)), capacity=32)

    kept = chain(storage)

    assert kept == list(range(100 - len(kept), 100))
    assert len(kept) == 32
    assert len(storage) == len(kept)
    assert storage.stored == 100


def test_an_eviction_is_announced_before() -> None:
    storage = Storage(SCHEMA, 16)
    gone: list[int] = []
    storage.listeners.append(lambda rows: gone.extend(storage.columns["action"][rows].tolist()))

    for number in range(0, 40, 4):
        storage.append(0, *steps(number, 4))

    assert gone == list(range(24))


def test_a_slot_that_was_silent_too_long_begins_anew() -> None:
    storage = Storage(SCHEMA, 16)
    storage.append(1, *steps(500, 2, end=0))
    for number in range(0, 40, 8):
        storage.append(0, *steps(number, 8))
    assert storage.newest(1) == NONE

    storage.append(1, *steps(502, 2, start=False))

    assert chain(storage, 1) == [502, 503]


def test_positions_count_within_an_episode() -> None:
    storage = filled(steps(0, 3), steps(3, 4, end=0), steps(7, 2, start=False))

    positions = [int(storage.positions[row_of(storage, number)]) for number in range(9)]

    assert positions == [0, 1, 2, 0, 1, 2, 3, 4, 5]


def test_an_unfinished_episode_is_cut_in_its_newest_state() -> None:
    storage = filled(steps(0, 3, end=0))

    row = storage.cut(0)

    assert row == row_of(storage, 2)
    assert storage.flags[row] & FINAL
    assert storage.cut(0) == NONE
    assert storage.cut(7) == NONE


def test_more_steps_than_fit_are_refused() -> None:
    storage = Storage(SCHEMA, 16)

    with pytest.raises(ValueError, match="17 steps at once do not fit into 16 rows"):
        storage.append(0, *steps(0, 17))


def test_flags_are_kept() -> None:
    storage = filled(steps(0, 2, end=FINAL))

    flags = [int(storage.flags[row_of(storage, number)]) for number in range(3)]

    assert flags == [START, 0, FINAL]


def test_a_random_history_equals_a_list() -> None:
    generator = np.random.default_rng(3)
    storage = Storage(SCHEMA, 128)
    written: dict[int, list[int]] = {slot: [] for slot in range(4)}
    number = 0
    for _ in range(300):
        slot, count = int(generator.integers(4)), int(generator.integers(1, 20))
        storage.append(slot, *steps(number, count, end=0))
        written[slot] += range(number, number + count)
        number += count

    kept = {slot: chain(storage, slot) for slot in written}

    for slot, numbers in kept.items():
        assert numbers == written[slot][len(written[slot]) - len(numbers) :]
    assert sum(map(len, kept.values())) == 128
    assert min(min(numbers) for numbers in kept.values() if numbers) == number - 128


def test_old_blocks_are_evicted_and_newer_ones_stay(monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr(storage_module, "monotonic", lambda: now)
    storage = Storage(SCHEMA, 64)
    storage.append(0, *steps(0, 6))
    storage.append(1, *steps(100, 3))
    now = 200.0
    storage.append(0, *steps(6, 6))

    storage.evict_before(150.0)

    assert chain(storage) == list(range(6, 12))
    assert chain(storage, 1) == []
    assert storage.evicted == 9

    storage.evict_before(250.0)

    assert len(storage) == 0
    storage.append(0, *steps(20, 2))
    assert chain(storage) == [20, 21]


def test_old_steps_are_evicted_in_a_slow_environment_as_in_a_fast_one(monkeypatch) -> None:
    now = 0.0
    monkeypatch.setattr(storage_module, "monotonic", lambda: now)
    storage = Storage(SCHEMA, 64)
    for number in range(4):
        storage.append(0, *steps(number, 1, start=number == 0, end=0))
        storage.append(1, *steps(100 + 8 * number, 8, end=0))
        storage.append(2, *steps(200 + 2 * number, 2, end=0))
        now += 10.0

    storage.evict_before(15.0)

    assert chain(storage, 0) == [2, 3]
    assert chain(storage, 1) == list(range(116, 132))
    assert chain(storage, 2) == [204, 205, 206, 207]
    again = Storage(SCHEMA, 64)
    snapshot = storage.snapshot()
    while snapshot.copy_some():
        pass
    again.restore(storage.contents() | named("column/", snapshot.columns))
    again.evict_before(25.0)
    assert [chain(again, slot)[0] for slot in range(3)] == [3, 124, 206]


def test_old_steps_are_evicted_with_any_steps_in_between(monkeypatch) -> None:
    now = 0.0
    monkeypatch.setattr(storage_module, "monotonic", lambda: now)
    random = np.random.default_rng(1)
    storage, written = Storage(SCHEMA, 128), [(-1.0, 0)] * 3
    for _ in range(2000):
        slot, count = int(random.integers(3)), int(random.integers(1, 30))
        following = written[slot][1]
        storage.append(slot, *steps(following, count, start=False, end=0))
        written[slot] = now, following + count
        if random.random() < 0.2:
            storage.evict_before(now - 5.0)
            assert sum(len(chain(storage, slot)) for slot in range(3)) == len(storage)
            for number, (last_at, following) in enumerate(written):
                kept = chain(storage, number)
                assert kept == list(range(following - len(kept), following))
                assert bool(kept) <= (last_at >= now - 5.0)
        now += 1.0


def test_steps_are_not_evicted_by_the_call_that_stores_them() -> None:
    storage = filled(steps(0, 4, end=0), capacity=32)
    storage.append(1, *steps(100, 24, end=0))

    places = storage.append(0, *steps(4, 20, start=False))

    assert storage.columns["action"][places].tolist() == list(range(4, 24))
    assert chain(storage) == list(range(4, 24))
    assert chain(storage, 1) == list(range(112, 124))


def test_rows_that_are_needed_are_passed_over_as_long_as_there_are_others() -> None:
    storage = filled(steps(0, 4, end=0), capacity=16)
    storage.needed[storage.append(1, *steps(100, 4, end=0))] = True

    for number in range(4, 40, 4):
        storage.append(0, *steps(number, 4, start=False, end=0))

    assert chain(storage, 1) == [100, 101, 102, 103]
    assert chain(storage) == list(range(28, 40))
    storage.needed[storage.serials >= 0] = True
    storage.append(2, *steps(200, 4))
    assert chain(storage, 1) == []
    assert chain(storage) == list(range(28, 40))


def test_no_row_is_in_two_places_however_slow_environments_are() -> None:
    random = np.random.default_rng(0)
    storage, following = Storage(SCHEMA, 64), [0] * 3
    for _ in range(2000):
        slot, count = int(random.integers(3)), int(random.integers(1, 65))
        places = storage.append(slot, *steps(following[slot], count, start=False, end=0))
        following[slot] += count
        assert len(np.unique(places)) == count
        assert chain(storage, slot)[-count:] == list(
            range(following[slot] - count, following[slot])
        )


def append(storage: Storage, slot: int, *numbers: int) -> None:
    rows, flags = steps(0, len(numbers), end=0)
    storage.append(slot, rows | {"action": np.array(numbers)}, flags)


def ring(storage: Storage, slot: int) -> list[int]:
    """The actions in the ring of a slot, the oldest first."""
    rows = storage.ring(slot, -storage.size, 0)
    return storage.columns["action"][rows[storage.serials[rows] != NONE]].tolist()


@pytest.fixture(name="rings")
def _rings() -> Storage:
    return Storage(SCHEMA, 8, rings=2)


def test_steps_of_one_ring_take_no_room_of_another(rings) -> None:
    append(rings, 1, 100, 101)
    for first in range(0, 9, 3):
        append(rings, 0, first, first + 1, first + 2)
    assert ring(rings, 0) == [5, 6, 7, 8]
    assert ring(rings, 1) == [100, 101]
    assert (len(rings), rings.stored, rings.evicted) == (6, 11, 5)


def test_a_slot_that_follows_another_one_in_its_ring_makes_room_of_the_oldest(rings) -> None:
    append(rings, 0, 0, 1, 2)
    append(rings, 2, 10, 11)
    assert ring(rings, 2) == [1, 2, 10, 11]
    newest = rings.newest(2)
    assert rings.numbers[newest] == 1  # its rows do not follow those of the slot before


def test_the_oldest_rows_of_a_ring_may_be_evicted(rings) -> None:
    append(rings, 0, 0, 1, 2)
    rings.evict(rings.ring(0, -3, -1))
    assert ring(rings, 0) == [2]
    append(rings, 0, 3, 4, 5, 6)
    assert ring(rings, 0) == [3, 4, 5, 6]


def test_restored_rings_go_on_where_they_were(rings) -> None:
    append(rings, 1, 100, 101)
    append(rings, 0, 0, 1, 2, 3)
    append(rings, 0, 4)
    contents, snapshot = rings.contents(), rings.snapshot()
    while snapshot.copy_some():
        pass
    again = Storage(SCHEMA, 8, rings=2)
    again.restore(contents | named("column/", snapshot.columns))
    append(again, 1, 102)
    append(again, 0, 5)
    assert ring(again, 0) == [2, 3, 4, 5]
    assert ring(again, 1) == [100, 101, 102]

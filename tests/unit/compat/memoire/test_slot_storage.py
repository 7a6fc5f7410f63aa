"""Each slot has room of its own."""

import numpy as np
import pytest

from relaax.compat.memoire.table import SlotStorage
from relaax.replay.schema import Column, Schema

SCHEMA = Schema({"number": Column(np.dtype(np.int64))})


def append(storage: SlotStorage, slot: int, *numbers: int) -> None:
    storage.append(slot, {"number": np.array(numbers)}, np.zeros(len(numbers), np.uint8))


def numbers(storage: SlotStorage, slot: int) -> list[int]:
    """What the ring of a slot has, the oldest first."""
    return storage.columns["number"][storage.ring(slot, 0, storage.held(slot))].tolist()


@pytest.fixture(name="storage")
def _storage():
    return SlotStorage(SCHEMA, count=2, size=4)


def test_steps_of_one_slot_take_no_room_of_another(storage):
    append(storage, 1, 100, 101)
    for first in range(0, 9, 3):
        append(storage, 0, first, first + 1, first + 2)
    assert numbers(storage, 0) == [5, 6, 7, 8]
    assert numbers(storage, 1) == [100, 101]
    assert (len(storage), storage.stored, storage.evicted) == (6, 11, 5)


def test_a_slot_that_follows_another_one_in_its_ring_makes_room_of_the_oldest(storage):
    append(storage, 0, 0, 1, 2)
    append(storage, 2, 10, 11)
    assert numbers(storage, 2) == [1, 2, 10, 11]
    newest = storage.newest(2)
    assert storage.numbers[newest] == 1  # its rows do not follow those of the slot before


def test_the_oldest_rows_of_a_ring_may_be_evicted(storage):
    append(storage, 0, 0, 1, 2)
    storage.evict(storage.ring(0, 0, 2))
    assert numbers(storage, 0) == [2]
    append(storage, 0, 3, 4, 5, 6)
    assert numbers(storage, 0) == [3, 4, 5, 6]

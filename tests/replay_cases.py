"""Episodes of numbered steps, and storages that hold them."""

import numpy as np

from relaax.replay.schema import Column, Schema
from relaax.replay.storage import FINAL, START, TERMINATED, Storage

SCHEMA = Schema(
    {
        "observation": Column(np.dtype(np.float32), (2,)),
        "action": Column(np.dtype(np.int64)),
        "reward": Column(np.dtype(np.float32)),
    }
)


def steps(first: int, count: int, *, start: bool = True, end: int = TERMINATED):
    """Steps numbered from ``first`` on: (rows, flags). With FINAL as ``end`` one more row comes."""
    length = count + (end == FINAL)
    numbers = np.arange(first, first + length)
    rows = {
        "observation": np.stack([numbers, -numbers], axis=1).astype(np.float32),
        "action": numbers.astype(np.int64),
        "reward": (numbers % 10).astype(np.float32),
    }
    flags = np.zeros(length, np.uint8)
    flags[0] |= START * start
    flags[-1] |= end
    return rows, flags


def filled(*episodes, capacity: int = 256, slot: int = 0) -> Storage:
    """A storage with these ``steps`` in one slot."""
    storage = Storage(SCHEMA, capacity)
    for rows, flags in episodes:
        storage.append(slot, rows, flags)
    return storage


def row_of(storage: Storage, number: int) -> int:
    """The row that holds step ``number``."""
    found = np.flatnonzero((storage.columns["action"] == number) & (storage.serials >= 0))
    assert len(found) == 1
    return int(found[0])

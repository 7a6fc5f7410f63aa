"""Checks saved contents before a replay goes on from them.

A checksum proves only that the bytes are the written ones. Their meaning is checked here: errors
that would show later, at a draw or an eviction, are found before the replay starts.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import DamagedCheckpoint
from relaax.observations import NUMBERS
from relaax.replay.array_bytes import below
from relaax.replay.storage import ABANDONED, ENDS, NONE, PER_ROW, START, Storage
from relaax.replay.table import Table, TableCounts

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

#: No count is beyond it: numbers of items, which are counts of rows times the capacity, fit then.
_MOST_KEYS = 2**62


def require_sound(
    contents: Mapping[str, Array], storage: Storage, tables: Mapping[str, Table]
) -> None:
    """Raise DamagedCheckpoint, which names the array and the place, if no replay has saved them.

    ``contents`` are of a replay with an equal storage and equal tables.
    """
    saved = _Saved(contents)
    rows = _Rows(saved.below("storage/"), storage)
    rows.check_counts()
    rows.check_chains()
    rows.check_columns()
    for name, table in tables.items():
        rows.check_table(saved.below(f"table/{name}/"), table)
    saved.counts("counts", 4)
    if "changes" in contents:
        saved.require("changes", saved.take("changes", np.int64) >= 0, "at least 0")
    slots = _slots_of_writers(saved.take("writers", np.uint8, -1))
    saved.require("storage/slots", contents["storage/slots"] < slots, f"below {slots}")


class _Saved:
    """Arrays by name, below a prefix; messages have their whole names."""

    def __init__(self, arrays: Mapping[str, Array], prefix: str = "") -> None:
        self.arrays = below(prefix, arrays)
        self.prefix = prefix

    def below(self, prefix: str) -> "_Saved":
        found = _Saved(self.arrays, prefix)
        found.prefix = self.prefix + prefix
        return found

    def take(self, name: str, dtype: npt.DTypeLike, *shape: int) -> Array:
        """Return an array; a length of -1 may be any."""
        if name not in self.arrays:
            raise DamagedCheckpoint(f"{self.prefix}{name} is missing")
        array = self.arrays[name]
        lengths = [
            length if wanted < 0 else wanted
            for wanted, length in zip(shape, (*array.shape, *shape), strict=False)
        ]
        if array.dtype != np.dtype(dtype) or array.shape != tuple(lengths):
            raise DamagedCheckpoint(
                f"{self.prefix}{name} is {array.dtype} {list(array.shape)}, and must be "
                f"{np.dtype(dtype)} {list(shape)}".replace("-1", "N")
            )
        return array

    def counts(self, name: str, length: int, most: int = _MOST_KEYS) -> Array:
        counts = self.take(name, np.int64, length)
        self.require(name, (counts >= 0) & (counts <= most), f"from 0 to {most}")
        return counts

    def require(self, name: str, is_good: BoolArray, rule: str) -> None:
        """Raise DamagedCheckpoint for the first value [N, ...] that is not good, bool [N]."""
        if is_good.all():
            return
        index, array = int(np.argmin(is_good)), self.arrays[name]
        value = array[index] if array.ndim else array
        raise DamagedCheckpoint(
            f"{self.prefix}{name} is {value} at place {index}, and must be {rule}"
        )


class _Rows:
    """The rows of a storage that were saved, N of them, and how they follow each other."""

    def __init__(self, saved: _Saved, storage: Storage) -> None:
        self._saved = saved
        self._capacity, self._schema = storage.capacity, storage.schema
        self._rows = saved.take("rows", np.int64, -1)
        count = len(self._rows)
        self._of = {
            name: saved.take(name, np.uint8 if name == "flags" else np.int64, count)
            for name in PER_ROW
        }
        self._check_rows(saved, "rows")
        #: int64 [capacity]: which of the saved rows it is; ``NONE`` for others.
        self._places = np.full(storage.capacity, NONE, np.int64)
        self._places[self._rows] = np.arange(count)

    def check_counts(self) -> None:
        """Check how many rows were stored and evicted, and the numbers of each."""
        saved, count = self._saved, len(self._rows)
        counts = saved.counts("counts", 2, _MOST_KEYS // self._capacity)
        stored = int(counts[0])
        evicted = stored - count
        saved.require("counts", counts == [stored, evicted], f"{evicted}, or rows are missing")
        serials = self._of["serials"]
        saved.require(
            "serials",
            (serials >= 0) & (serials < stored) & _once(serials),
            f"from 0 to {stored - 1}, and there once",
        )
        saved.require(
            "flags", self._of["flags"] & ~np.uint8(START | ENDS | ABANDONED) == 0, "a flag"
        )
        for name in ("positions", "numbers", "slots"):
            values = self._of[name]
            saved.require(name, (values >= 0) & (values < _MOST_KEYS), "at least 0")
        saved.require("ages", np.isfinite(saved.take("ages", np.float64, count)), "finite")

    def check_chains(self) -> None:
        """Check that a row's neighbours are rows of its slot, which name it, too."""
        of, slots = self._of, self._of["slots"]
        for name in ("following", "before"):
            is_known = (of[name] == NONE) | self._are_saved(of[name])
            self._saved.require(name, is_known, f"{NONE}, or a row that was saved")
        for name, back in (("following", "before"), ("before", "following")):
            has = of[name] != NONE
            others = self._places[np.where(has, of[name], self._rows)]
            names_this = (of[back][others] == self._rows) & (slots[others] == slots)
            self._saved.require(name, ~has | names_this, "a row of its slot that names this one")
            if name == "following":
                is_later = of["serials"][others] > of["serials"]
                is_next = is_later & (of["numbers"][others] == of["numbers"] + 1)
                self._saved.require(name, ~has | is_next, "the next row of its slot")

    def check_columns(self) -> None:
        """Check that the columns are the schema's, and finite."""
        saved = self._saved.below("column/")
        for name in saved.arrays.keys() - self._schema.columns.keys():
            raise DamagedCheckpoint(f"{saved.prefix}{name} is a column that is not known")
        for name, column in self._schema.columns.items():
            dtype = column.dtype
            if column.is_open and name in saved.arrays and saved.arrays[name].dtype.kind in NUMBERS:
                dtype = saved.arrays[name].dtype
            values = saved.take(name, dtype, len(self._rows), *column.shape)
            if dtype.kind == "f":
                is_finite = np.asarray(np.isfinite(values).all(axis=tuple(range(1, values.ndim))))
                saved.require(name, is_finite, "finite")

    def check_table(self, saved: _Saved, table: Table) -> None:
        """Check the counts and items of a table."""
        saved.counts("counts", len(TableCounts.__dataclass_fields__))
        # Draws of single items are counted for all rows, or not at all.
        times = saved.take("times", np.int64, -1)
        if len(times):
            saved.counts("times", self._capacity)
        self._check_items(saved, "waiting")
        selector = saved.below("selector/")
        count = self._check_items(selector, "rows")
        if table.priority_power is not None:
            _check_priorities(selector, count, table.priority_power)

    def _check_items(self, saved: _Saved, name: str) -> int:
        rows = self._check_rows(saved, name)
        saved.require(name, self._are_saved(rows), "a row that was saved")
        return len(rows)

    def _check_rows(self, saved: _Saved, name: str) -> IntArray:
        rows: IntArray = saved.take(name, np.int64, -1)
        is_row = (rows >= 0) & (rows < self._capacity)
        saved.require(name, is_row, f"a row below {self._capacity}")
        saved.require(name, _once(rows), "there once")
        return rows

    def _are_saved(self, rows: IntArray) -> BoolArray:
        is_row = (rows >= 0) & (rows < self._capacity)
        is_saved: BoolArray = is_row & (self._places[rows % self._capacity] != NONE)
        return is_saved


def _once(values: IntArray) -> BoolArray:
    """Return which of the values [N] are there once."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    is_once: BoolArray = counts[places] == 1
    return is_once


def _check_priorities(saved: _Saved, count: int, alpha: float) -> None:
    priorities = saved.take("priorities", np.float64, count)
    is_weight = np.isfinite(priorities) & (priorities >= 0)
    saved.require("priorities", is_weight, "finite, and at least 0")
    largest = saved.take("largest", np.float64, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite, is_power = np.isfinite(np.cumsum(priorities)), np.isfinite(largest**alpha)
    saved.require("priorities", is_finite, "less, or their sum is not finite")
    # Each new item begins with it, and it never falls below the first one's.
    is_largest = np.isfinite(largest) & (largest >= 1.0) & is_power
    saved.require("largest", is_largest, "finite, and at least 1")


def _slots_of_writers(text: Array) -> int:
    """Return how many slots there ever were, if their records are right."""
    try:
        read = json.loads(text.tobytes())
        slots = read["slots"]
        writers = [*read["writers"].values(), *read.get("expired", {}).values()]
        entries = [entry for writer in writers for entry in writer]
        numbers = [number for _, number, _ in entries]
        is_right = all(type(value) is int for entry in entries for value in entry) and all(
            0 <= number < slots and 0 <= next_step < _MOST_KEYS for _, number, next_step in entries
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedCheckpoint(
            f"writers is no list of writers and their slots: {error}"
        ) from error
    if type(slots) is not int or not 0 <= slots <= _MOST_KEYS or not is_right:
        raise DamagedCheckpoint("writers has slots that there are not")
    if len(set(numbers)) != len(numbers):
        raise DamagedCheckpoint("writers has a slot of two environments")
    return slots

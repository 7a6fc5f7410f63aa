"""Checks saved contents before a replay goes on from them.

A checksum proves only that the bytes are the written ones. Their meaning is checked here: errors
that would show later, at a draw or an eviction, are found before the replay starts.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from relaax.errors import DamagedCheckpoint
from relaax.observations import NUMBERS
from relaax.replay.mixed import Mixed
from relaax.replay.storage import ENDS, NONE, START, Storage
from relaax.replay.table import Table, TableCounts

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

#: No count is beyond it: numbers of items, which are counts of rows times the capacity, fit then.
_MOST_KEYS = 2**62

#: So much of a column is looked at once.
BYTES_AT_ONCE = 4 * 1024 * 1024

_COLUMN = "column/"


def require_sound(
    contents: Mapping[str, Array], storage: Storage, tables: Mapping[str, Table | Mixed]
) -> None:
    """Raise DamagedCheckpoint, which names the array and the row, if no replay can have saved them.

    ``contents`` are of a replay with an equal storage and equal tables.
    """
    saved = _Saved(contents)
    rows = _Rows(saved.below("storage/"), storage)
    rows.check()
    for name, table in tables.items():
        _check_table(saved.below(f"table/{name}/"), table, rows)
    _check_counts(saved, "counts", 4, _MOST_KEYS)
    if saved.has("changes"):
        _require(saved, "changes", saved.take("changes", np.int64) >= 0, "at least 0")
    slots = _slots_of_writers(saved)
    _require(saved.below("storage/"), "slots", rows.slots < slots, f"below {slots}", rows.place)


class _Saved:
    """Arrays by name; messages have their whole names."""

    def __init__(self, arrays: Mapping[str, Array], prefix: str = "") -> None:
        self._arrays = arrays
        self.prefix = prefix

    def full(self, name: str) -> str:
        return self.prefix + name

    def below(self, prefix: str) -> "_Saved":
        return _Saved(self._arrays, self.prefix + prefix)

    def has(self, name: str) -> bool:
        return self.full(name) in self._arrays

    def names(self) -> list[str]:
        begin = len(self.prefix)
        return [name[begin:] for name in self._arrays if name.startswith(self.prefix)]

    def take_any(self, name: str) -> Array:
        return self._arrays[self.full(name)]

    def take(self, name: str, dtype: npt.DTypeLike, *shape: int) -> Array:
        """Return an array; a length of -1 may be any."""
        if not self.has(name):
            raise DamagedCheckpoint(f"{self.full(name)} is missing")
        array = self._arrays[self.full(name)]
        is_alike = len(array.shape) == len(shape) and all(
            wanted in (-1, length) for wanted, length in zip(shape, array.shape, strict=True)
        )
        if array.dtype != np.dtype(dtype) or not is_alike:
            lengths = ["N" if length < 0 else length for length in shape]
            raise DamagedCheckpoint(
                f"{self.full(name)} is {array.dtype} {list(array.shape)}, and must be "
                f"{np.dtype(dtype)} [{', '.join(map(str, lengths))}]"
            )
        return array


class _Rows:
    """The rows of a storage that were saved, N of them, and how they follow each other."""

    def __init__(self, saved: _Saved, storage: Storage) -> None:
        self._saved = saved
        self._capacity = storage.capacity
        self._schema = storage.schema
        self.rows: IntArray = saved.take("rows", np.int64, -1)
        count = len(self.rows)
        self._flags = saved.take("flags", np.uint8, count)
        self._following, self._before, self._serials, self._numbers, self.slots = (
            saved.take(name, np.int64, count)
            for name in ("following", "before", "serials", "numbers", "slots")
        )
        _require(saved, "rows", self._are_rows(self.rows), f"a row below {storage.capacity}")
        times = np.bincount(self.rows, minlength=storage.capacity)
        _require(saved, "rows", times[self.rows] == 1, "there once")
        #: int64 [capacity]: which of the saved rows it is; ``NONE`` for others.
        self._places = np.full(storage.capacity, NONE, np.int64)
        self._places[self.rows] = np.arange(count)

    def place(self, index: int) -> str:
        """Return in words which row a value belongs to."""
        return f"row {self.rows[index]}"

    def check(self) -> None:
        """Raise DamagedCheckpoint where a storage could not go on from these."""
        self._check_counts()
        self._check_chains()
        self._check_columns()

    def check_items(self, saved: _Saved, name: str) -> int:
        """Check rows [N] that a table has; return how many they are."""
        rows = saved.take(name, np.int64, -1)
        _require(saved, name, self._are_rows(rows), f"a row below {self._capacity}")
        _require(saved, name, self._places[rows] != NONE, "a row that was saved")
        times = np.bincount(rows, minlength=self._capacity)
        _require(saved, name, times[rows] == 1, "there once")
        return len(rows)

    def check_times(self, saved: _Saved) -> None:
        """Check how often each row was drawn: of no row, where the table did not count."""
        if saved.has("times") and saved.take("times", np.int64, -1).size == 0:
            return
        times = saved.take("times", np.int64, self._capacity)
        _require(saved, "times", times >= 0, "at least 0", lambda row: f"row {row}")

    def _are_rows(self, rows: IntArray) -> BoolArray:
        return (rows >= 0) & (rows < self._capacity)

    def _check_counts(self) -> None:
        stored, _ = _check_counts(self._saved, "counts", 2, _MOST_KEYS // self._capacity)
        evicted = np.array([stored, stored - len(self.rows)])
        is_right = self._saved.take("counts", np.int64, 2) == evicted
        _require(self._saved, "counts", is_right, f"{evicted[1]}, or there are other rows")
        is_known = (self._serials >= 0) & (self._serials < stored)
        self._require("serials", is_known, f"from 0 to {stored - 1}")
        is_once = np.ones(len(self.rows), np.bool_)
        order = np.argsort(self._serials, kind="stable")
        is_once[order[1:]] = np.diff(self._serials[order]) > 0
        self._require("serials", is_once, "there once")
        self._require("flags", self._flags & ~np.uint8(START | ENDS) == 0, "a flag")
        for name in ("positions", "numbers", "slots"):
            values = self._saved.take(name, np.int64, len(self.rows))
            self._require(name, (values >= 0) & (values < _MOST_KEYS), "at least 0")
        ages = self._saved.take("ages", np.float64, len(self.rows))
        self._require("ages", np.isfinite(ages), "finite")

    def _check_chains(self) -> None:
        """A row's neighbours are rows of its slot, which name it, too."""
        for name, linked in (("following", self._following), ("before", self._before)):
            is_row = self._are_rows(linked) & (self._places[linked % self._capacity] != NONE)
            self._require(name, is_row | (linked == NONE), f"{NONE}, or a row that was saved")
        for name, linked, back in (
            ("following", self._following, self._before),
            ("before", self._before, self._following),
        ):
            has = linked != NONE
            others = self._places[np.where(has, linked, self.rows)]
            self._require(name, ~has | (back[others] == self.rows), "a row that names this one")
            self._require(name, self.slots[others] == self.slots, "a row of its slot")
        after = self._places[np.where(self._following == NONE, self.rows, self._following)]
        has = self._following != NONE
        self._require(
            "following",
            ~has | (self._serials[after] > self._serials),
            "a row that was stored later",
        )
        self._require(
            "following", ~has | (self._numbers[after] == self._numbers + 1), "the next of its slot"
        )

    def _check_columns(self) -> None:
        saved = self._saved.below(_COLUMN)
        for name in saved.names():
            if name not in self._schema.columns:
                raise DamagedCheckpoint(f"{saved.full(name)} is a column that is not known")
        for name, column in self._schema.columns.items():
            dtype = column.dtype
            if column.is_open and saved.has(name) and saved.take_any(name).dtype.kind in NUMBERS:
                dtype = saved.take_any(name).dtype
            values = saved.take(name, dtype, len(self.rows), *column.shape)
            if dtype.kind in "fc":
                self._require_finite(saved, name, values)

    def _require_finite(self, saved: _Saved, name: str, values: Array) -> None:
        for begin, part in _pieces(values):
            is_finite = np.isfinite(part)
            if is_finite.all():
                continue
            index = begin + int(np.argmin(is_finite.reshape(len(part), -1).all(axis=1)))
            value = part[~is_finite][0]
            _refuse(saved, name, value, self.place(index), "finite")

    def _require(self, name: str, is_good: BoolArray, rule: str) -> None:
        _require(self._saved, name, is_good, rule, self.place)


def _check_table(saved: _Saved, table: Table | Mixed, rows: _Rows) -> None:
    if isinstance(table, Mixed):
        _check_counts(saved, "drawn", 1, _MOST_KEYS)
        return
    _check_counts(saved, "counts", len(TableCounts.__dataclass_fields__), _MOST_KEYS)
    rows.check_times(saved)
    rows.check_items(saved, "waiting")
    count = rows.check_items(saved.below("selector/"), "rows")
    if table.priority_power is not None:
        _check_priorities(saved.below("selector/"), count, table.priority_power)


def _check_priorities(saved: _Saved, count: int, alpha: float) -> None:
    priorities = saved.take("priorities", np.float64, count)
    is_good = np.isfinite(priorities) & (priorities >= 0)
    _require(saved, "priorities", is_good, "finite, and at least 0")
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.cumsum(priorities)
        largest = saved.take("largest", np.float64, 1)
        new = largest**alpha
    _require(saved, "priorities", np.isfinite(sums), "less, or their sum is not finite")
    # Each new item begins with it, and it never falls below the first one's.
    is_good = np.isfinite(largest) & (largest >= 1.0) & np.isfinite(new)
    _require(saved, "largest", is_good, "finite, and at least 1")


def _check_counts(saved: _Saved, name: str, length: int, most: int) -> list[int]:
    counts = saved.take(name, np.int64, length)
    _require(saved, name, (counts >= 0) & (counts <= most), f"from 0 to {most}")
    found: list[int] = counts.tolist()
    return found


def _slots_of_writers(saved: _Saved) -> int:
    """Return how many slots there ever were, if their records are right."""
    text = saved.take("writers", np.uint8, -1).tobytes()
    try:
        read = json.loads(text)
        slots = read["slots"]
        entries = [
            entry
            for group in (read["writers"], read.get("expired", {}))
            for writer in group.values()
            for entry in writer
        ]
        numbers = [number for _, number, _ in entries]
        is_right = all(type(value) is int for entry in entries for value in entry) and (
            all(0 <= number < slots for number in numbers)
            and all(0 <= next_step < _MOST_KEYS for _, _, next_step in entries)
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedCheckpoint(
            f"{saved.full('writers')} is no list of writers and their slots: {error}"
        ) from error
    if type(slots) is not int or not 0 <= slots <= _MOST_KEYS or not is_right:
        raise DamagedCheckpoint(f"{saved.full('writers')} has slots that there are not")
    if len(set(numbers)) != len(numbers):
        raise DamagedCheckpoint(f"{saved.full('writers')} has a slot of two environments")
    return slots


def _require(
    saved: _Saved,
    name: str,
    is_good: BoolArray,
    rule: str,
    place: Callable[[int], str] = lambda index: f"place {index}",
) -> None:
    """Raise DamagedCheckpoint for the first value [N, ...] that is not good, bool [N]."""
    if is_good.all():
        return
    index = int(np.argmin(is_good))
    array = saved.take_any(name)
    _refuse(saved, name, array[index] if array.ndim else array, place(index), rule)


def _refuse(saved: _Saved, name: str, value: Any, place: str, rule: str) -> NoReturn:
    raise DamagedCheckpoint(f"{saved.full(name)} is {value} at {place}, and must be {rule}")


def _pieces(values: Array) -> Iterator[tuple[int, Array]]:
    """Yield parts of values [N, ...], each with its first place."""
    row_bytes = max(1, values.itemsize * math.prod(values.shape[1:]))
    length = max(1, BYTES_AT_ONCE // row_bytes)
    for begin in range(0, len(values), length):
        yield begin, values[begin : begin + length]

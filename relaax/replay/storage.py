"""Steps as columns, each stored once, in the order in which every environment made them."""

import sys
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.errors import ConfigurationError
from relaax.replay.schema import Schema

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]

#: Flags of a row, as bits: an episode's first; its last, after which nothing more can be earned;
#: the state in which an episode was cut off, without an action.
START, TERMINATED, FINAL = 1, 2, 4
ENDS = TERMINATED | FINAL

#: Beside FINAL, where no one knows how the episode would have gone on: its environment has left, or
#: has begun anew. After a limit of time it would have gone on from the final state.
ABANDONED = 16

#: Not stored, but said of a step that is delivered: steps before it, of the same episode, never
#: will be.
GAP = 8

NONE = -1

#: The column of rows that stand for several environment steps each: how many these are.
STEPS = "steps"

#: The columns of what a step has earned, and of the version of the policy that chose.
REWARD, VERSION = "reward", "version"

#: So much is copied at once.
BYTES_AT_ONCE = 4 * 1024 * 1024

#: The known facts of each row beside its columns.
PER_ROW = ("flags", "following", "before", "serials", "positions", "numbers", "slots")

#: Bytes of a row beside its columns: its flags, ``needed``, and seven numbers.
BYTES_PER_ROW = 1 + 1 + 7 * 8


def steps_in(flags: Flags, columns: Mapping[str, Array]) -> int:
    """Return how many environment steps rows [N] stand for: as their column ``STEPS`` says.

    Without this column each row with an action is one.
    """
    steps = columns.get(STEPS)
    return int(np.count_nonzero(flags & FINAL == 0) if steps is None else steps.sum())


class Empty(Protocol):
    """Makes room for arrays; ``numpy.empty`` is one."""

    def __call__(self, shape: tuple[int, ...], dtype: np.dtype[Any], /) -> Array:
        """Return an array of any content."""


def gather(column: Array, rows: IntArray, empty: Empty = np.empty) -> Array:
    """Return ``column[rows]``, [*rows.shape, ...], in memory of ``empty``; ``rows`` must exist."""
    out = empty((*rows.shape, *column.shape[1:]), column.dtype)
    # Other modes look at all rows first, and write to a copy.
    return np.take(column, rows, axis=0, out=out, mode="clip")


def joined_arrays(parts: Sequence[Array], axis: int) -> Array:
    """Return arrays, of one shape but for ``axis``, joined.

    ConfigurationError for arrays of several types: bytes and floats have other meanings.
    """
    types = sorted({part.dtype.name for part in parts})
    if len(types) > 1:
        raise ConfigurationError(
            f"replay servers hold arrays {list(parts[0].shape[1:])} of {' and of '.join(types)}: "
            "let all environments of a training send one type, and begin with empty replays"
        )
    return np.concatenate(parts, axis)


class Snapshot:
    """Columns [capacity, ...] of certain ``rows`` int64 [N], as of the making of this.

    The rows are copied some at a time, in their order; between the pieces other rows may be
    written, but a row that is about to be evicted is copied before.
    """

    def __init__(self, columns: Mapping[str, Array], rows: IntArray) -> None:
        self._from = columns
        #: By name [N, ...]: complete when ``copy_some`` has returned False.
        self.columns = {
            name: np.empty((len(rows), *column.shape[1:]), column.dtype)
            for name, column in columns.items()
        }
        self._rows = rows
        #: Of each row, its place in ``rows``; -1 once it is copied, and for others.
        self._places = np.full(max((len(each) for each in columns.values()), default=0), -1)
        self._places[rows] = np.arange(len(rows))
        #: How many rows of the order have been copied, or were before their turn.
        self._done = 0
        row_bytes = sum(column[:1].nbytes for column in columns.values())
        self._rows_at_once = max(1, BYTES_AT_ONCE // max(1, row_bytes))

    def copy_some(self) -> bool:
        """Copy some of the remaining rows; return whether there were any."""
        if self._done == len(self._rows):
            return False
        sys.audit("relaax.replay.copy")
        rows = self._rows[self._done : self._done + self._rows_at_once]
        self._done += len(rows)
        self.evicted(rows)
        return True

    def evicted(self, rows: IntArray) -> None:
        """Copy ``rows`` before they are gone, if that is still to be done."""
        rows = rows[self._places[rows] >= 0]
        places = self._places[rows]
        self._places[rows] = -1
        for name, column in self._from.items():
            self.columns[name][places] = column[rows]


class Storage:
    """The newest ``capacity`` steps, of all slots together; a slot is one environment that writes.

    A row is a step: observation, action, reward, and flags. Rows are taken one after the other, and
    from the first one on again, so that each new step takes the place of the oldest one, whatever
    its slot is. Rows of a slot follow each other by ``following`` and ``before``, wherever they
    are. Rows that are ``needed`` are passed over: they stay as long as there are others. With
    several ``rings``, which divide the capacity, this is so in each: slot s has ring s % ``rings``.
    """

    def __init__(self, schema: Schema, capacity: int, rings: int = 1) -> None:
        self.schema = schema
        self.capacity = capacity
        #: How many rows a ring has.
        self.size = capacity // rings
        self.columns = schema.rows(self.capacity)
        self.flags: Flags = np.zeros(self.capacity, np.uint8)
        #: int64 [capacity]: the row that follows, and the one before; ``NONE`` without one.
        self.following = np.full(self.capacity, NONE, np.int64)
        self.before = np.full(self.capacity, NONE, np.int64)
        #: int64 [capacity]: how many rows were stored before this one; ``NONE`` if it is free.
        self.serials = np.full(self.capacity, NONE, np.int64)
        #: int64 [capacity]: how many rows of its episode were stored before this one.
        self.positions = np.zeros(self.capacity, np.int64)
        #: int64 [capacity]: how many rows its slot has stored before this one, since it was empty.
        self.numbers = np.zeros(self.capacity, np.int64)
        #: int64 [capacity]: the slot of each row.
        self.slots = np.full(self.capacity, NONE, np.int64)
        #: bool [capacity]: whether it stays while others can make room; set by a table.
        self.needed: BoolArray = np.zeros(self.capacity, np.bool_)
        #: float64 [capacity]: when each was written, in seconds of ``monotonic``.
        self._written_at = np.zeros(self.capacity)
        #: Called with rows int64 [N] that are about to be evicted.
        self.listeners: list[Callable[[IntArray], None]] = []
        #: By ring: which of its rows is taken next.
        self._next = [0] * rings
        #: By slot: its newest row.
        self._newest: dict[int, int] = {}
        self._stored = 0
        #: How many rows were evicted.
        self.evicted = 0

    def settle(self, types: Mapping[str, np.dtype[Any]]) -> None:
        """Set the types of columns whose type is open, by name; nothing was stored yet."""
        self.schema = self.schema.settled(types)
        for name, column in self.schema.columns.items():
            if self.columns[name].dtype != column.dtype:
                self.columns[name] = np.zeros((self.capacity, *column.shape), column.dtype)

    @property
    def stored(self) -> int:
        """How many rows were ever stored."""
        return self._stored

    def __len__(self) -> int:
        """Return how many rows there are now."""
        return self._stored - self.evicted

    def newest(self, slot: int) -> int:
        """Return the newest row of ``slot``; ``NONE`` without one."""
        return self._newest.get(slot, NONE)

    def append(self, slot: int, rows: Mapping[str, Array], flags: Flags) -> IntArray:
        """Store rows [N, ...] with their flags uint8 [N] behind the newest of ``slot``.

        Return their places int64 [N]. N is at most the size of a ring, so that no row is evicted by
        the call that stored it.
        """
        count = len(flags)
        if count > self.size:
            raise ValueError(f"{count} steps at once do not fit into {self.size} rows")
        places = self._take(slot, count)
        if count:
            self._write(slot, places, rows, flags)
        return places

    def cut(self, slot: int) -> int:
        """Let the unfinished episode of ``slot`` end in its newest state.

        The action of that step is taken back. Return the row, ``NONE`` without an unfinished
        episode.
        """
        row = self.newest(slot)
        if row == NONE or self.flags[row] & ENDS:
            return NONE
        self.flags[row] |= FINAL | ABANDONED
        return row

    def evict_before(self, moment: float) -> None:
        """Evict the rows that were written before a ``monotonic`` time."""
        rows = self._rows()
        self.evict(rows[self._written_at[rows] < moment])

    def snapshot(self) -> Snapshot:
        """Begin to copy the columns of all rows; to be given to ``forget`` when that is done."""
        snapshot = Snapshot(self.columns, self._rows())
        self.listeners.append(snapshot.evicted)
        return snapshot

    def forget(self, snapshot: Snapshot) -> None:
        """Save no more rows for ``snapshot`` from being evicted."""
        self.listeners.remove(snapshot.evicted)

    def contents(self) -> dict[str, Array]:
        """Return copies of the state that an equal storage needs to go on, without columns.

        The columns of a ``snapshot`` of the same time are ``column/NAME``.
        """
        rows = self._rows()
        return {
            "rows": rows,
            **{name: getattr(self, name)[rows] for name in PER_ROW},
            "ages": monotonic() - self._written_at[rows],
            "counts": np.array([self._stored, self.evicted]),
        }

    def restore(self, contents: Mapping[str, Array]) -> None:
        """Go on from ``contents`` of a storage of the same size, with columns; this one is new."""
        rows = contents["rows"]
        if contents["counts"][0]:  # something was stored
            self.settle({name: contents[f"column/{name}"].dtype for name in self.columns})
        for name, column in self.columns.items():
            column[rows] = contents[f"column/{name}"]
        for name in PER_ROW:
            getattr(self, name)[rows] = contents[name]
        self._written_at[rows] = monotonic() - contents["ages"]
        by_age = rows[np.argsort(contents["serials"])].tolist()
        self._newest = {int(self.slots[row]): row for row in by_age}
        for row in by_age:
            self._next[row // self.size] = (row + 1) % self.size
        self._stored, self.evicted = contents["counts"].tolist()

    def _rows(self) -> IntArray:
        """Return the rows int64 [N] that are stored, in the order in which they are taken again."""
        rings = range(len(self._next))
        rows = np.concatenate([self.ring(number, 0, self.size) for number in rings])
        stored: IntArray = rows[self.serials[rows] != NONE]
        return stored

    def ring(self, slot: int, begin: int, end: int) -> IntArray:
        """Return rows of the ring of ``slot`` in the order in which they are taken.

        Row 0 is the next one, and row -1 the one that was taken last.
        """
        number = slot % len(self._next)
        places = (self._next[number] + np.arange(begin, end)) % self.size
        rows: IntArray = places + number * self.size
        return rows

    def _take(self, slot: int, count: int) -> IntArray:
        """Return the next ``count`` rows, which are free then, for steps of ``slot``."""
        rows = self.ring(slot, 0, count)
        if self.needed[rows].any():
            rows = self._passed_over(slot, count)
        if count:
            self._next[slot % len(self._next)] = (int(rows[-1]) + 1) % self.size
        self.evict(rows[self.serials[rows] != NONE])
        return rows

    def _passed_over(self, slot: int, count: int) -> IntArray:
        """Return the next ``count`` rows that are not needed; the oldest, where all others are."""
        rows = self.ring(slot, 0, self.size)
        needed = rows[self.needed[rows]]
        by_age = needed[np.argsort(self.serials[needed])]
        return np.concatenate([rows[~self.needed[rows]], by_age])[:count]

    def _write(self, slot: int, places: IntArray, rows: Mapping[str, Array], flags: Flags) -> None:
        """Chain rows behind the newest of ``slot``."""
        count, last, begin = len(places), self.newest(slot), int(places[0])
        follow_each_other = int(places[-1]) - begin == count - 1
        where = slice(begin, begin + count) if follow_each_other else places
        for name, column in self.columns.items():
            column[where] = rows[name]
        self.flags[where] = flags
        self.before[places[1:]] = places[:-1]
        self.following[places[:-1]] = places[1:]
        self.before[begin], self.following[places[-1]] = last, NONE
        position = number = 0
        if last != NONE:
            self.following[last] = begin
            position, number = int(self.positions[last]) + 1, int(self.numbers[last]) + 1
        self.positions[where] = _positions(flags, position)
        self.numbers[where] = np.arange(number, number + count)
        self.serials[where] = np.arange(self._stored, self._stored + count)
        self.slots[where] = slot
        self._written_at[where] = monotonic()
        self._newest[slot] = int(places[-1])
        self._stored += count

    def evict(self, rows: IntArray) -> None:
        """Forget ``rows`` int64 [N], which are stored."""
        if len(rows) == 0:
            return
        for listener in self.listeners:
            listener(rows)
        self.serials[rows] = NONE
        self.needed[rows] = False
        self.evicted += len(rows)
        before, after = self.before[rows], self.following[rows]
        self.following[before[before != NONE]] = NONE
        self.before[after[after != NONE]] = NONE
        for row in rows[after == NONE].tolist():
            slot = int(self.slots[row])
            if self._newest.get(slot) == row:  # the slot has no other, and begins anew
                del self._newest[slot]


def _positions(flags: Flags, first: int) -> IntArray:
    """Return positions int64 [N] within their episodes; ``first`` is the first row's."""
    count = np.arange(len(flags))
    if not (flags & START).any():
        return count + first
    starts = np.where(flags & START != 0, count, -1)
    latest = np.maximum.accumulate(starts)
    return np.where(latest >= 0, count - latest, count + first)

"""Steps as columns, each stored once, in the order in which every environment made them."""

from collections import deque
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.schema import Schema
from relaax.replay.snapshot import Snapshot

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]

#: What a row is, as bits: an episode's first; its last, after which nothing more can be earned; the
#: state in which an episode was cut off, where no action was taken.
START, TERMINATED, FINAL = 1, 2, 4
ENDS = TERMINATED | FINAL

#: Not stored, but said of a step that is delivered: steps before it, of the same episode, never
#: will be.
GAP = 8

#: Rows that a slot takes from the pool at once, and that are evicted together.
BLOCK = 64

NONE = -1

#: What is known of each row beside its columns.
PER_ROW = ("flags", "following", "before", "serials", "positions", "numbers", "slots")


class Storage:
    """A pool of rows that slots share; a slot is one environment that writes.

    A row is a step: what was observed, done and earned, and flags. Rows of a slot follow each other
    by ``following`` and ``before``, wherever they are. Where the pool is full, the oldest block is
    taken back, of whichever slot it is.
    """

    def __init__(self, schema: Schema, capacity: int, block: int = BLOCK) -> None:
        blocks = max(2, -(-capacity // block))
        self.schema = schema
        self.capacity = blocks * block
        self.columns = schema.rows(self.capacity)
        self.flags: Flags = np.zeros(self.capacity, np.uint8)
        #: int64 [capacity]: the row that follows, and the one before; ``NONE`` without one.
        self.following = np.full(self.capacity, NONE, np.int64)
        self.before = np.full(self.capacity, NONE, np.int64)
        #: int64 [capacity]: how many rows were stored before this one; ``NONE`` if it is free.
        self.serials = np.full(self.capacity, NONE, np.int64)
        #: int64 [capacity]: how many rows of its episode were stored before this one.
        self.positions = np.zeros(self.capacity, np.int64)
        #: int64 [capacity]: how many rows its slot has stored before this one, since it had none.
        self.numbers = np.zeros(self.capacity, np.int64)
        #: int64 [capacity]: whose row it is.
        self.slots = np.full(self.capacity, NONE, np.int64)
        #: Called with rows int64 [N] that are about to be evicted: consecutive ones of a slot.
        self.listeners: list[Callable[[IntArray], None]] = []
        self._block = block
        self._free = deque(range(0, self.capacity, block))
        #: First rows of blocks in the order in which they were taken.
        self._taken: deque[int] = deque()
        #: By slot: its newest row, and the end of the block around it.
        self._ends: dict[int, tuple[int, int]] = {}
        #: float64 [blocks]: when each was written to last, in seconds of ``monotonic``; infinite if
        #: it is free.
        self._written_at = np.full(blocks, np.inf)
        self._stored = 0
        #: How many rows were evicted.
        self.evicted = 0

    def settle(self, types: Mapping[str, np.dtype[Any]]) -> None:
        """Let columns whose type is still open be of these, by name; nothing was stored yet."""
        self.schema = self.schema.settled(types)
        for name, column in self.schema.columns.items():
            if self.columns[name].dtype != column.dtype:
                self.columns[name] = np.zeros((self.capacity, *column.shape), column.dtype)

    @property
    def block(self) -> int:
        """How many rows a slot takes at once, and are evicted together."""
        return self._block

    @property
    def stored(self) -> int:
        """How many rows were ever stored."""
        return self._stored

    def __len__(self) -> int:
        """Return how many rows there are now."""
        return self._stored - self.evicted

    def newest(self, slot: int) -> int:
        """Return the newest row of ``slot``; ``NONE`` without one."""
        return self._ends.get(slot, (NONE, 0))[0]

    def append(self, slot: int, rows: Mapping[str, Array], flags: Flags) -> IntArray:
        """Store rows [N, ...] with their flags uint8 [N] behind the newest of ``slot``.

        Return their places int64 [N]. N is at most the capacity less a block, so that no row is
        evicted by the call that stored it.
        """
        if len(flags) > self.capacity - self._block:
            raise ValueError(
                f"{len(flags)} steps at once do not fit into a storage of {self.capacity} steps"
            )
        self._spare(slot, len(flags))
        places = []
        begin = 0
        while begin < len(flags):
            last, end = self._ends.get(slot, (NONE, 0))
            place = last + 1
            if last == NONE or place == end:
                place = self._take_block()
                last, end = self.newest(slot), place + self._block
            length = min(len(flags) - begin, end - place)
            self._write(slot, last, slice(place, place + length), rows, flags, begin)
            places.append(np.arange(place, place + length))
            self._ends[slot] = place + length - 1, end
            begin += length
        return np.concatenate(places) if places else np.zeros(0, np.int64)

    def cut(self, slot: int) -> int:
        """Let the unfinished episode of ``slot`` end in its newest state.

        The action that was taken there is taken back. Return the row, ``NONE`` without such an
        episode.
        """
        row = self.newest(slot)
        if row == NONE or self.flags[row] & ENDS:
            return NONE
        self.flags[row] |= FINAL
        return row

    def evict_before(self, moment: float) -> None:
        """Evict blocks that were written to last before a ``monotonic`` time.

        They may stand behind the block of a slow environment, which was taken before and is written
        to still. Those of one slot were written in the order in which they were taken.
        """
        old = set((np.flatnonzero(self._written_at < moment) * self._block).tolist())
        if not old:
            return
        evicted = [begin for begin in self._taken if begin in old]
        self._taken = deque(begin for begin in self._taken if begin not in old)
        self._free.extend(self._evict(begin) for begin in evicted)

    def snapshot(self) -> Snapshot:
        """Begin to copy the columns of all rows; to be given to ``forget`` when that is done."""
        snapshot = Snapshot(self.columns, self._rows(), np.array(self._taken, np.int64))
        self.listeners.append(snapshot.evicted)
        return snapshot

    def forget(self, snapshot: Snapshot) -> None:
        """Save no more rows for ``snapshot`` from being evicted."""
        self.listeners.remove(snapshot.evicted)

    def contents(self) -> dict[str, Array]:
        """Return copies of what a storage of the same size needs to go on, but for columns.

        Those of a ``snapshot`` that was made at the same time are ``column/NAME``.
        """
        rows = self._rows()
        now = monotonic()
        ends = [(slot, newest, end) for slot, (newest, end) in self._ends.items()]
        return {
            "rows": rows,
            **{name: getattr(self, name)[rows] for name in PER_ROW},
            "blocks": (blocks := np.array(self._taken, np.int64)),
            "ages": now - self._written_at[blocks // self._block],
            "ends": np.array(ends, np.int64).reshape(len(ends), 3),
            "counts": np.array([self._stored, self.evicted]),
        }

    def restore(self, contents: Mapping[str, Array]) -> None:
        """Go on from ``contents`` of a storage of the same size, with columns; this one is new."""
        rows, now = contents["rows"], monotonic()
        if contents["counts"][0]:  # something was stored
            self.settle({name: contents[f"column/{name}"].dtype for name in self.columns})
        for name, column in self.columns.items():
            column[rows] = contents[f"column/{name}"]
        for name in PER_ROW:
            getattr(self, name)[rows] = contents[name]
        blocks = contents["blocks"]
        self._taken = deque(blocks.tolist())
        self._free = deque(sorted(set(self._free) - set(self._taken)))
        self._written_at[blocks // self._block] = now - contents["ages"]
        self._ends = {slot: (newest, end) for slot, newest, end in contents["ends"].tolist()}
        self._stored, self.evicted = contents["counts"].tolist()

    def _rows(self) -> IntArray:
        """Return the rows int64 [N] that are stored, block by block."""
        blocks = np.array(self._taken, np.int64)
        rows: IntArray = (blocks[:, np.newaxis] + np.arange(self._block)).reshape(-1)
        is_stored: BoolArray = self.serials[rows] != NONE
        return rows[is_stored]

    def _write(
        self,
        slot: int,
        last: int,
        places: slice,
        rows: Mapping[str, Array],
        flags: Flags,
        begin: int,
    ) -> None:
        """Chain rows from ``begin`` on behind the row ``last``."""
        count = places.stop - places.start
        given = slice(begin, begin + count)
        for name, column in self.columns.items():
            column[places] = rows[name][given]
        self.flags[places] = flags[given]
        self.before[places] = np.arange(places.start - 1, places.stop - 1)
        self.following[places] = np.arange(places.start + 1, places.stop + 1)
        self.before[places.start] = last
        self.following[places.stop - 1] = NONE
        position = number = 0
        if last != NONE:
            self.following[last] = places.start
            position, number = int(self.positions[last]) + 1, int(self.numbers[last]) + 1
        self.positions[places] = _positions(flags[given], position)
        self.numbers[places] = np.arange(number, number + count)
        self.serials[places] = np.arange(self._stored, self._stored + count)
        self.slots[places] = slot
        self._stored += count
        self._written_at[places.start // self._block] = monotonic()

    def _spare(self, slot: int, count: int) -> None:
        """Let no block be evicted that some of ``count`` rows of ``slot`` will be in.

        That of a slow environment may be among the oldest when more of its rows come.
        """
        last, end = self._ends.get(slot, (NONE, 0))
        needed = -(-(count - (end - last - 1)) // self._block) - len(self._free)
        for place in range(0 if last == NONE else min(needed, len(self._taken))):
            if self._taken[place] == end - self._block:
                del self._taken[place]
                self._taken.append(end - self._block)
                return

    def _take_block(self) -> int:
        """Return the first row of a block that is free, or of the oldest, which is evicted."""
        begin = self._free.popleft() if self._free else self._evict(self._taken.popleft())
        self._taken.append(begin)
        return begin

    def _evict(self, begin: int) -> int:
        """Forget the rows of a block, the oldest of their slot."""
        rows = np.arange(begin, begin + self._block)
        rows = rows[self.serials[rows] != NONE]
        for listener in self.listeners:
            listener(rows)
        self.serials[rows] = NONE
        self.evicted += len(rows)
        self._written_at[begin // self._block] = np.inf
        last = int(rows[-1])
        after = int(self.following[last])
        if after != NONE:
            self.before[after] = NONE
        else:  # its slot has nothing newer, and begins anew
            del self._ends[int(self.slots[last])]
        return begin


def _positions(flags: Flags, first: int) -> IntArray:
    """Return positions int64 [N] within their episodes; ``first`` is that of the first row."""
    count = np.arange(len(flags))
    if not (flags & START).any():
        return count + first
    starts = np.where(flags & START != 0, count, -1)
    latest = np.maximum.accumulate(starts)
    return np.where(latest >= 0, count - latest, count + first)

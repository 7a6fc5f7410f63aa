"""Items over stored steps: adds, draws, reads and removes them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.array_bytes import below, named
from relaax.replay.counts import LearntSteps
from relaax.replay.limiter import Limiter
from relaax.replay.removers import Remover, RemoverName
from relaax.replay.selectors import Drawn, FloatArray, IntArray, Prioritized, Queue, Selector
from relaax.replay.storage import ENDS, NONE, START, Empty, Flags, Storage, joined_arrays
from relaax.replay.views import View

#: Of a table with ``max_items``, a part of so many is inserted at once.
PIECES = 8

NOTHING = Drawn(np.zeros(0, np.int64), np.zeros(0))


_NO_ROWS = np.zeros(0, np.int64)


class Readiness:
    """Holds back a slot's rows until as many follow as an item needs, or their episode is over.

    Items that cross the ends of episodes need as many rows in any case.
    """

    def __init__(self, storage: Storage, ahead: int, crosses_episodes: bool = False) -> None:
        self._storage = storage
        self._ahead = ahead
        self._crosses_episodes = crosses_episodes
        #: By slot: rows int64 [N] that no end follows, and too few rows.
        self._waiting: dict[int, IntArray] = {}

    def appended(self, slot: int, rows: IntArray) -> IntArray:
        """Return rows of ``slot`` that ``rows`` [N], its newest, have completed, in their order."""
        waiting = self._waiting.get(slot)
        if waiting is not None:
            rows = np.concatenate([waiting, rows])
        places = np.arange(len(rows))
        complete = places + self._ahead < len(rows)
        if not self._crosses_episodes:
            ends = places[self._storage.flags[rows] & ENDS != 0]
            complete |= places <= (ends[-1] if len(ends) else -1)
        self._keep(slot, rows[~complete])
        return rows[complete]

    def waiting(self, slot: int) -> int:
        """Return how many rows of ``slot`` wait."""
        return len(self._waiting.get(slot, ()))

    def forget(self, rows: IntArray) -> None:
        """Forget ``rows``, which are about to be evicted."""
        for slot in self._waiting.keys() & set(self._storage.slots[rows].tolist()):
            self._keep(slot, self._waiting[slot][~np.isin(self._waiting[slot], rows)])

    def left(self, slot: int) -> IntArray:
        """Forget and return the rows of ``slot`` that wait: no more will ever follow them."""
        return self._waiting.pop(slot, _NO_ROWS)

    def _keep(self, slot: int, rows: IntArray) -> None:
        """Note which rows wait; of slots that never come again nothing is left."""
        if len(rows):
            self._waiting[slot] = rows
        else:
            self._waiting.pop(slot, None)

    def contents(self) -> IntArray:
        """Return all waiting rows int64 [N], each slot's in their order."""
        return np.concatenate([_NO_ROWS, *self._waiting.values()])

    def restore(self, rows: IntArray) -> None:
        """Go on from the state of ``contents``; the storage has been restored."""
        slots = self._storage.slots[rows]
        self._waiting = {int(slot): rows[slots == slot] for slot in np.unique(slots)}


Array = npt.NDArray[Any]


class Tails:
    """Keeps the last ``behind`` rows of the newest drawn item of each slot.

    The next item of the slot looks back at them: without them it could not be read as it was seen.
    """

    def __init__(self, storage: Storage, behind: int) -> None:
        self._storage = storage
        self._behind = behind
        #: By slot: rows, and their serials, by which other rows in their places are told apart.
        self._kept: dict[int, tuple[IntArray, IntArray]] = {}

    def drawn(self, slot: int, row: int) -> None:
        """Keep the rows up to ``row``, the last one of an item; those that were kept may go."""
        self._release(slot)
        if not self._is_followed(row):
            return
        rows = [row]
        while len(rows) < self._behind and (before := int(self._storage.before[rows[-1]])) != NONE:
            rows.append(before)
        kept = np.array(rows)
        self._storage.needed[kept] = True
        self._kept[slot] = kept, self._storage.serials[kept]

    def left(self, slot: int) -> None:
        """Take note that no more steps of ``slot`` will come."""
        if slot in self._kept and not self._is_followed(int(self._kept[slot][0][0])):
            self._release(slot)

    def _is_followed(self, row: int) -> bool:
        """Return whether an item that is not drawn yet, or not complete, follows."""
        following = int(self._storage.following[row])
        return following != NONE and bool(self._storage.needed[following])

    def _release(self, slot: int) -> None:
        rows, serials = self._kept.pop(slot, (_NO_ROWS, _NO_ROWS))
        self._storage.needed[rows[self._storage.serials[rows] == serials]] = False


@dataclass(frozen=True)
class Sample:
    """Items that were drawn, N of them."""

    #: int64 [N]: names of the items, which no others ever have.
    keys: IntArray
    #: float64 [N]: how probable each was.
    probabilities: FloatArray
    #: By name: the columns of the table's view, [N, ...] or time-major.
    columns: dict[str, Array]
    #: How many items the table had.
    items: int
    #: Of the item that is drawn most seldom.
    least_probability: float


def require_priorities(priorities: FloatArray) -> None:
    """Raise ValueError unless all priorities [N] are finite, and at least 0."""
    if not np.isfinite(priorities).all() or (priorities < 0).any():
        raise ValueError("priorities must be finite, and at least 0")


def joined(parts: Sequence[Sample], axis: int, items: int) -> Sample:
    """Return one batch, drawn of ``items`` in all; ``axis`` of its columns counts the parts'."""
    first, *others = parts
    if not others:
        return replace(first, items=items)
    return Sample(
        keys=np.concatenate([part.keys for part in parts]),
        probabilities=np.concatenate([part.probabilities for part in parts]),
        columns={
            name: joined_arrays([part.columns[name] for part in parts], axis)
            for name in first.columns
        },
        items=items,
        least_probability=min(part.least_probability for part in parts),
    )


@dataclass(frozen=True)
class TableState:
    """The state of a table that a sampler of several tables needs."""

    #: How many items it has.
    items: int
    #: The table's weight among several; 0 while nothing may be drawn.
    weight: float
    #: How many draws the ratio allows now; infinite without one.
    allowance: float


@dataclass
class TableCounts:
    """The counts of a table so far, in items."""

    inserted: int = 0
    drawn: int = 0
    #: Draws as the ratio counts them: here, and of several servers' tables together.
    charged: int = 0
    evicted: int = 0
    stale_updates: int = 0
    #: By the remover.
    removed: int = 0


class Table:
    """Items over a storage. Not for several threads at once: its owner has the lock.

    If it ``holds_drawn``, the items of the latest draw count as present until the next draw: so the
    limiter can keep steps out while a learner works on a batch. With a ``remover`` ``max_items``
    keeps no steps out: others leave. If it ``keeps_undrawn``, the storage keeps the steps of
    undrawn and of incomplete items, however many others come: for one table of a storage, whose
    items are drawn once, and each step is in one of them.
    """

    def __init__(
        self,
        storage: Storage,
        view: View,
        selector: Selector,
        limiter: Limiter,
        max_times_sampled: int | None = None,
        kind: str = "",
        holds_drawn: bool = False,
        remover: RemoverName | None = None,
        keeps_undrawn: bool = False,
    ) -> None:
        #: Items and draws in words.
        self.kind = kind
        self._storage = storage
        self._view = view
        self._selector = selector
        self._limiter = limiter
        self._remover: Remover | None = None
        if remover is not None:
            self._remover = Remover(remover, limiter, selector, storage)
            self._limiter = replace(limiter, max_items=None)
        self._readiness = Readiness(storage, view.ahead, view.crosses_episodes)
        self._max_times = max_times_sampled
        self._holds_drawn = holds_drawn
        self._held = 0
        #: Counts of each slot's steps, if every step should be learnt.
        self.learnt = LearntSteps() if keeps_undrawn else None
        self._tails = Tails(storage, view.behind)
        self._times = np.zeros(storage.capacity if max_times_sampled else 0, np.int64)
        self.counts = TableCounts()
        storage.listeners.append(self.evicted)

    def __len__(self) -> int:
        """Return how many items can be drawn."""
        return len(self._selector)

    @property
    def most_rows_at_once(self) -> float:
        """How many steps of a slot are taken at once, so that the limiter can keep out more."""
        if self._limiter.max_items is None:
            return math.inf
        return self._view.stride * max(1, self._limiter.max_items // PIECES)

    def least_rows(self, slots: int) -> int:
        """Return how many steps must be stored for items of so many slots to become complete."""
        view, limiter = self._view, self._limiter
        undrawn = 0  # items that are drawn once must be there together, a batch at least
        if isinstance(self._selector, Queue):
            undrawn = view.stride * max(limiter.min_items, limiter.max_items or 0)
        return slots * (view.behind + 1 + view.ahead) + undrawn

    @property
    def priority_power(self) -> float | None:
        """The power of an item's priority that it is drawn in proportion to; None without one."""
        return self._selector.alpha if isinstance(self._selector, Prioritized) else None

    def keeps_out(self, slot: int, flags: Flags) -> str:
        """Return why no more steps of ``slot``, with flags [N], may be stored; "" if they may."""
        counts, items = self.counts, len(self) + self._held
        # Only new items can end it, if the table is empty, or all items have the priority 0.
        if self._held == 0 and self._selector.weight == 0:
            return ""
        most = 0 if self._limiter.max_items is None else self._most_items(slot, flags)
        return self._limiter.keeps_out(items, counts.inserted, counts.charged, most)

    def holds_back(self, count: int, charge: int | None = None) -> str:
        """Return why ``count`` items, which the ratio counts as ``charge``, may not be drawn."""
        cost = count if charge is None else charge
        why = self._limiter.holds_back(self.counts.inserted, self.counts.charged, cost)
        if why or (count <= self._selector.most and self._is_ready()):
            return why
        if count > self._selector.most:
            return f"{len(self):,} of the {count:,} items of a batch are complete"
        return f"none of the {len(self):,} items that are there may be drawn"

    def state(self) -> TableState:
        """Return the state that a sampler of several tables needs."""
        if not self._is_ready():
            return TableState(len(self), 0.0, 0.0)
        allowance = min(self._allowance(), self._selector.most)
        return TableState(len(self), self._selector.weight, allowance)

    def let_go(self) -> None:
        """Note that the drawn items are not in use any more: more are requested."""
        self._held = 0

    def appended(self, slot: int, rows: IntArray) -> None:
        """Add the items that ``rows`` [N], the newest of ``slot``, have completed."""
        if self.learnt is not None and len(rows):
            self._storage.needed[rows] = True
            self.learnt.stored(slot, len(rows))
        complete = self._with_past(self._readiness.appended(slot, rows))
        self.insert(complete[self._view.items(self._storage, complete)])

    def left(self, slot: int) -> None:
        """Take note that no more steps of ``slot`` will come."""
        self._storage.needed[self._readiness.left(slot)] = False
        self._tails.left(slot)
        if self.learnt is not None:
            self.learnt.left(slot)

    def insert(self, items: IntArray) -> None:
        """Add ``items`` [N]: the rows of items that are complete now."""
        if self._max_times:
            self._times[items] = 0
        self._selector.add(items)
        self.counts.inserted += len(items)
        if self._remover is not None:
            self.counts.removed += self._remover.make_room()

    def draw(self, count: int, charge: int | None = None, *, empty: Empty = np.empty) -> Sample:
        """Draw ``count`` items and read them into memory from ``empty``; nothing ``holds_back``."""
        items, least_probability = len(self), self._selector.least_probability
        drawn = self._selector.draw(count) if count else NOTHING
        self.counts.drawn += count
        self.counts.charged += count if charge is None else charge
        self._held = count if self._holds_drawn else 0
        sample = Sample(
            keys=self._keys(drawn.rows),
            probabilities=drawn.probabilities,
            columns=self._view.read(self._storage, drawn.rows, empty),
            items=items,
            least_probability=least_probability,
        )
        if self._max_times:
            self._retire(drawn.rows, self._max_times)
        if self.learnt is not None:
            self._need_no_more(drawn.rows)
            self.learnt.learnt(self._storage.slots[drawn.rows], self._view.stride)
        return sample

    def update_priorities(self, keys: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N]; return how many of them are gone, which is counted.

        ValueError for a table without priorities.
        """
        if not isinstance(self._selector, Prioritized):
            raise ValueError("the items of this table have no priorities")
        rows = keys % self._storage.capacity
        is_here = self._keys(rows) == keys
        # An item that was drawn twice has two priorities: the later one counts.
        rows, places = np.unique(rows[is_here][::-1], return_index=True)
        unknown = self._selector.update(rows, priorities[is_here][::-1][places])
        stale = int(np.count_nonzero(~is_here)) + unknown
        self.counts.stale_updates += stale
        return stale

    def evicted(self, rows: IntArray) -> None:
        """Forget the items of ``rows``, and those around them that need these rows."""
        around = np.concatenate([self._looking_back(rows), self._looking_ahead(rows)])
        rows = np.concatenate([rows, np.unique(around)])
        self._readiness.forget(rows)
        before = len(self)
        self._selector.remove(rows)
        self.counts.evicted += before - len(self)

    def contents(self) -> dict[str, Array]:
        """Return the state that an equal table needs to go on, by name; its storage is apart."""
        return {
            "counts": np.array(astuple(self.counts)),
            "times": self._times.copy(),
            "waiting": self._readiness.contents(),
            **named("selector/", self._selector.contents()),
        }

    def restore(self, contents: Mapping[str, Array]) -> None:
        """Go on from the state of ``contents``; the storage has been restored."""
        self.counts = TableCounts(*contents["counts"].tolist())
        if len(contents["times"]) == len(self._times):  # else draws are counted from now on
            self._times[:] = contents["times"]
        self.counts.charged = self._limiter.resumed(self.counts.inserted, self.counts.charged)
        self._readiness.restore(contents["waiting"])
        self._selector.restore(below("selector/", contents))
        if self.learnt is not None:
            self._storage.needed[contents["waiting"]] = True
            for rows in self._rows_of(contents["selector/rows"]):
                self._storage.needed[rows] = True

    def _is_ready(self) -> bool:
        """Return whether anything may be drawn, as far as the present items decide."""
        return self.counts.inserted >= self._limiter.min_items and self._selector.weight > 0

    def _allowance(self) -> float:
        return self._limiter.allowance(self.counts.inserted, self.counts.charged)

    def _rows_of(self, items: IntArray) -> Iterator[IntArray]:
        """Yield the rows of ``items`` [N], each of which has a step in ``stride`` rows."""
        rows = items
        for _ in range(self._view.stride):
            yield rows
            rows = self._storage.following[rows]

    def _need_no_more(self, items: IntArray) -> None:
        """Let the storage evict the rows of ``items`` [N] that no next item looks back at."""
        last = items
        for rows in self._rows_of(items):
            self._storage.needed[rows] = False
            last = rows
        for row in last.tolist() if self._view.behind else ():
            self._tails.drawn(int(self._storage.slots[row]), row)

    def _most_items(self, slot: int, flags: Flags) -> int:
        """Return how many items more steps of ``slot``, with flags [N], complete at most."""
        stride = self._view.stride
        if self._view.crosses_episodes or not (flags & (START | ENDS)).any():
            return -(-len(flags) // stride)
        # Each start begins an item. It ends the previous episode, as an end does: all waiting rows
        # are complete then.
        starts = np.flatnonzero(flags & START)
        lengths = np.diff([-self._readiness.waiting(slot), *starts, len(flags)])
        return int((-(-lengths // stride)).sum())

    def _with_past(self, rows: IntArray) -> IntArray:
        """Return the ``rows``, all consecutive, before which no needed row is missing.

        If earlier rows were evicted or lost, an episode goes on without its start: its first rows
        would look like one. Views that cross episodes mark the first known row.
        """
        if len(rows) == 0 or self._view.crosses_episodes:
            return rows
        missing = self._missing_before(int(rows[0]))
        starts = np.flatnonzero(self._storage.flags[rows[:missing]] & START)
        return rows[starts[0] if len(starts) else missing :]

    def _missing_before(self, row: int) -> int:
        """Return how many of the rows that ``row`` needs before it are not here."""
        for missing in range(self._view.behind, 0, -1):
            if self._storage.flags[row] & START:
                break
            row = int(self._storage.before[row])
            if row == NONE:
                return missing
        return 0

    def _looking_back(self, rows: IntArray) -> IntArray:
        """Return the rows behind ``rows`` [N] that need them, which are of their episodes."""
        found, behind = [np.zeros(0, np.int64)], rows
        for _ in range(self._view.behind):
            behind = self._storage.following[behind]
            behind = behind[behind != NONE]
            behind = behind[self._storage.flags[behind] & START == 0]
            found.append(behind)
        every = np.concatenate(found)
        return np.setdiff1d(every, rows) if len(every) else every

    def _looking_ahead(self, rows: IntArray) -> IntArray:
        """Return the rows before ``rows`` [N] that need them.

        There are some only where rows stay that are older: those that another table needs.
        """
        found, before = [np.zeros(0, np.int64)], rows
        for _ in range(self._view.ahead):
            before = self._storage.before[before]
            before = np.setdiff1d(before[before != NONE], rows)
            if not len(before):
                break
            if not self._view.crosses_episodes:
                before = before[self._storage.flags[before] & ENDS == 0]
            found.append(before)
        return np.concatenate(found)

    def _keys(self, rows: IntArray) -> IntArray:
        """Return keys int64 [N], which no other item ever has."""
        return self._storage.serials[rows] * self._storage.capacity + rows

    def _retire(self, rows: IntArray, most: int) -> None:
        """Count a draw of ``rows``, and remove items that were drawn ``most`` times."""
        np.add.at(self._times, rows, 1)
        self._selector.remove(np.unique(rows[self._times[rows] >= most]))

"""Entries that are drawn by their errors, in rollouts: a table of ``relaax.replay``."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from relaax.compat.memoire.entry import LAST, NEXT, QVEST, WEIGHT
from relaax.compat.memoire.returns import EpisodeRows, PriorityScale, traced_back
from relaax.compat.memoire.settings import MemorySettings
from relaax.replay.selectors import FloatArray, IntArray, Prioritized
from relaax.replay.storage import ENDS, NONE, START, TERMINATED, Empty, Storage, gather
from relaax.replay.table import Sample, Table
from relaax.replay.views import Array, BoolArray, View, rows_ahead, rows_behind


@dataclass(frozen=True)
class Endings(View):
    """The rollout that ends with an entry, [N, rollout_len, ...], as the settings have it.

    Beside the columns there is ``qvest``, the entries' ``returns`` [capacity, J] in the value's
    shape. With ``multi_step``, all are there twice: ``NEXT`` names those so many entries later, or
    of the episode's last entry. The table itself waits for rows ahead and behind.
    """

    settings: MemorySettings
    returns: FloatArray
    crosses_episodes: bool = field(default=True, init=False)

    def __str__(self) -> str:
        return "rollouts of Memoire"

    def items(self, storage: Storage, rows: IntArray) -> BoolArray:
        """Return which of ``rows`` [N] have the entries around them that they need now.

        A rollout without padding needs entries before it, and a stack of frames the earlier ones of
        its episode. A pair needs entries behind it, unless the episode has ended.
        """
        settings, may = self.settings, np.ones(len(rows), np.bool_)
        if not settings.do_padding:
            first = self._rollouts(storage, rows)[:, 0]
            frames, belongs = rows_behind(storage, first, settings.frame_stack - 1)
            starts = storage.flags[frames[0]] & START != 0
            may = (first != NONE) & (belongs.all(axis=0) | starts)
        if settings.multi_step:
            later, belongs = rows_ahead(storage, rows, settings.multi_step)
            may &= belongs[-1] | (storage.flags[later[-1]] & ENDS != 0)
        return may

    def read(self, storage: Storage, rows: IntArray, empty: Empty = np.empty) -> dict[str, Array]:
        """See View."""
        found = self._read(storage, rows, empty)
        if self.settings.multi_step:
            later = rows_ahead(storage, rows, self.settings.multi_step)[0][-1]
            after = self._read(storage, later, empty)
            found |= {NEXT + name: array for name, array in after.items()}
        return found

    def _read(self, storage: Storage, rows: IntArray, empty: Empty) -> dict[str, Array]:
        rollouts = self._rollouts(storage, rows)
        found = {name: gather(column, rollouts, empty) for name, column in storage.columns.items()}
        stack = self.settings.frame_stack
        if stack > 1:
            frames = rows_behind(storage, rollouts.reshape(-1), stack - 1)[0].T
            name, column = next(iter(storage.columns.items()))
            found[name] = gather(column, frames.reshape(*rollouts.shape, stack), empty)
        shape = storage.schema.columns[LAST[-1]].shape
        returns = self.returns[rollouts].reshape(*rollouts.shape, *shape)
        return found | {QVEST: returns.astype(np.float32)}

    def _rollouts(self, storage: Storage, rows: IntArray) -> IntArray:
        """Return int64 [N, rollout_len]: the rows up to ``rows`` [N], ``NONE`` where one lacks."""
        length = self.settings.rollout_len
        if self.settings.do_padding:
            return rows_behind(storage, rows, length - 1)[0].T
        found = np.empty((len(rows), length), np.int64)
        for step in range(length - 1, -1, -1):
            found[:, step] = rows
            rows = np.where(rows == NONE, NONE, storage.before[rows])
        return found


class ErrorTable(Table):
    """Each entry is an item, whose weight the table finds itself when it arrives, and later again.

    A storage has the columns ``LAST``, and a ring for each slot, of which only the oldest rows are
    evicted.
    """

    def __init__(
        self, storage: Storage, view: Endings, selector: Prioritized, *others: Any
    ) -> None:
        super().__init__(storage, view, selector, *others)
        self._settings, self._by_weight = view.settings, selector
        reward, _, value = (storage.columns[name] for name in LAST)
        self._rewards = reward.reshape(storage.capacity, -1)
        self._returns = view.returns
        self._values = value.reshape(storage.capacity, view.returns.shape[1])
        #: float64 [capacity]: the weight of each entry, whether it may be drawn or not.
        self._weights = np.zeros(storage.capacity)
        #: int64 [rings]: how many rows each ring has.
        self._row_counts = np.zeros(storage.capacity // storage.size, np.int64)
        self.scale, self.episodes = PriorityScale(), 0

    @property
    def most_rows_at_once(self) -> float:
        """See Table: as many as a slot has room for."""
        return self._storage.size

    @property
    def total_weight(self) -> float:
        """The sum of the weights of all that may be drawn."""
        return self._by_weight.weight

    def evicted(self, rows: IntArray) -> None:
        """See Table."""
        super().evicted(rows)
        np.subtract.at(self._row_counts, rows // self._storage.size, 1)

    def appended(self, slot: int, rows: IntArray) -> None:
        """See Table: renew the returns and weights of the episodes of ``rows`` [N]."""
        flags, count = self._storage.flags[rows], len(rows)
        self._row_counts[slot % len(self._row_counts)] += count
        self.counts.inserted += count
        self.episodes += int(np.count_nonzero(flags & ENDS)) if count else 1
        starts = np.flatnonzero(self._storage.positions[rows] == 0)
        bounds = np.unique([0, *starts, count])
        changed = [
            self._weigh(slot, rows[begin:end], behind=count - end)
            for begin, end in pairwise(bounds.tolist())
        ]
        self._make_room(slot)
        # Entries become items, or are items no more: those that waited for these, and the oldest.
        held, settings = self._held_by(slot), self._settings
        waited = self._storage.ring(slot, -min(count + settings.multi_step, held), 0)
        history = settings.rollout_len + settings.frame_stack
        oldest = self._storage.ring(slot, -held, min(history - held, 0))
        renewed = np.unique(np.concatenate([waited, oldest, *changed]))
        self._renew(renewed[self._storage.serials[renewed] != NONE])

    def renew(self) -> None:
        """Take note of changed settings, and find anew which entries may be drawn."""
        self._by_weight.decay = self._settings.priority_decay
        self._renew(np.flatnonzero(self._storage.serials != NONE))

    def draw(self, count: int, charge: int | None = None, *, empty: Empty = np.empty) -> Sample:
        """See Table; ``WEIGHT`` is by which each was drawn, and its weight decays."""
        total = self.total_weight
        sample = super().draw(count, charge, empty=empty)
        rows = sample.keys % self._storage.capacity
        self._weights[rows] = self._by_weight.weights(rows)
        sample.columns[WEIGHT] = (sample.probabilities * total).astype(np.float32)
        return sample

    def _held_by(self, slot: int) -> int:
        """Return how many rows the ring of ``slot`` has."""
        return int(self._row_counts[slot % len(self._row_counts)])

    def _weigh(self, slot: int, rows: IntArray, behind: int) -> IntArray:
        """Renew returns and weights of the episode that ``rows`` [N] belong to, its newest.

        ``behind`` further rows follow in the ring. Return the rows that have other weights.
        """
        newest, settings = rows[-1], self._settings
        if self._values.shape[1] == 0:
            self._weights[rows] = 1.0
            return rows
        begin = behind + 1 + int(self._storage.positions[newest])
        places = self._storage.ring(slot, -min(begin, self._held_by(slot)), -behind)
        episode = EpisodeRows(self._rewards, self._values, self._returns, places)
        self._returns[rows] = self._values[rows]
        rule, is_term = settings.rule, bool(self._storage.flags[newest] & TERMINATED)
        threshold = settings.traceback_threshold
        renewed = episode.places[traced_back(rule, episode, len(rows), is_term, threshold) :]
        errors = rule.errors(self._returns[renewed], self._values[renewed].astype(np.float64))
        self._weights[renewed] = self.scale.priorities(
            errors, settings.priority_exponent, settings.error_rate
        )
        return renewed

    def _make_room(self, slot: int) -> None:
        """Evict episodes that have lost their first entries, with padding, and too many of them."""
        most = self._settings.max_episode
        if not (self._settings.do_padding or most):
            return
        rows = self._storage.ring(slot, -self._held_by(slot), 0)
        begins = np.flatnonzero(self._storage.positions[rows] == 0)
        gone = int(begins[0]) if self._settings.do_padding and len(begins) else 0
        if 0 < most <= len(begins):
            gone = max(gone, int(begins[-most]))
        if gone:
            self._storage.evict(rows[:gone])

    def _renew(self, rows: IntArray) -> None:
        """Let ``rows`` [N] be drawn by their weights if the rows that they need are there."""
        may = self._view.items(self._storage, rows)
        self._by_weight.set_weights(rows, np.where(may, self._weights[rows], 0.0))

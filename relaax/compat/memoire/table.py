"""Entries that are drawn by their errors, in rollouts: a table of ``relaax.replay``."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from relaax.compat.memoire.entry import LAST, NEXT, QVEST, WEIGHT
from relaax.compat.memoire.returns import EpisodeRows, PriorityScale, traced_back
from relaax.compat.memoire.settings import MemorySettings
from relaax.replay.limiter import Limiter
from relaax.replay.schema import Schema
from relaax.replay.selectors import Drawn, FloatArray, IntArray, Prioritized
from relaax.replay.storage import ENDS, NONE, START, TERMINATED, Empty, Storage, gather
from relaax.replay.table import Sample, Table
from relaax.replay.views import Array, BoolArray, View, rows_ahead, rows_behind


class SlotStorage(Storage):
    """The newest ``size`` steps of each of ``count`` rings; slot s writes into ring s % ``count``.

    A ring's rows lie side by side. Only its oldest ones may be evicted.
    """

    def __init__(self, schema: Schema, count: int, size: int) -> None:
        super().__init__(schema, count * size)
        self.count, self.size = count, size
        #: By ring: the place in it that is taken next, and how many rows it has.
        self._ends = np.zeros(count, np.int64)
        self._held = np.zeros(count, np.int64)

    def held(self, slot: int) -> int:
        """Return how many rows the ring of ``slot`` has."""
        return int(self._held[slot % self.count])

    def ring(self, slot: int, begin: int, end: int) -> IntArray:
        """Return rows ``begin`` up to ``end`` of the ring of ``slot``, from its oldest one on."""
        ring = slot % self.count
        places = np.arange(begin, end) + self._ends[ring] - self._held[ring]
        rows: IntArray = ring * self.size + places % self.size
        return rows

    def evict(self, rows: IntArray) -> None:
        """See Storage."""
        super().evict(rows)
        np.subtract.at(self._held, rows // self.size, 1)

    def _take(self, slot: int, count: int) -> IntArray:
        ring, held = slot % self.count, self.held(slot)
        rows = self.ring(slot, held, held + count)
        self.evict(rows[self.serials[rows] != NONE])
        self._ends[ring] = (self._ends[ring] + count) % self.size
        self._held[ring] += count
        return rows


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

    def items(self, storage: Storage, rows: IntArray) -> BoolArray:
        """Return which of ``rows`` [N] have the entries around them that they need now.

        A rollout without padding needs those before it, and a stack of frames those that its
        episode had. A pair needs those behind it, unless the episode has ended.
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


class DecayingWeights(Prioritized):
    """Draws items in proportion to weights, each of which is multiplied by a decay at its draw."""

    def __init__(
        self, capacity: int, generator: np.random.Generator, settings: MemorySettings
    ) -> None:
        super().__init__(capacity, 1.0, generator)
        self._settings = settings

    @property
    def most(self) -> float:
        """See Selector."""
        return super().most if self._settings.priority_decay else len(self)

    def weigh(self, rows: IntArray, weights: FloatArray) -> None:
        """Let ``rows`` [N] have these weights [N]; rows of the weight 0 are no items."""
        self.remove(rows)
        is_item = weights > 0
        self.add(rows[is_item])
        self._tree.set(rows[is_item], weights[is_item])

    def weights(self, rows: IntArray) -> FloatArray:
        """Return the weights [N] of ``rows`` [N]."""
        return self._tree.priorities(rows)

    def draw(self, count: int) -> Drawn:
        """Draw one after the other; there are fewer where nothing is left.

        Many are proposed at once, by the weights before: of a row that was drawn k times since, one
        in ``decay ** -k`` proposals counts. So each draw is as probable as if it was made alone.
        """
        decay, total = self._settings.priority_decay, self.weight
        if decay == 1:
            return super().draw(count)
        rows: list[int] = []
        weights: list[float] = []
        while len(rows) < count and self.weight > 0:
            random, chances = self._generator.random((2, count - len(rows)))
            proposed = self._tree.find(random * self.weight)
            before, times = self.weights(proposed), Counter[int]()
            for row, weight, chance in zip(
                proposed.tolist(), before.tolist(), chances.tolist(), strict=True
            ):
                left = decay ** times[row]
                if chance < left:
                    times[row] += 1
                    rows.append(row)
                    weights.append(weight * left)
            drawn, counts = np.array(list(times)), np.array(list(times.values()))
            self.weigh(drawn, self.weights(drawn) * decay**counts)
        return Drawn(np.array(rows, np.int64), np.array(weights) / total)


class ErrorTable(Table):
    """Each entry is an item, whose weight the table finds itself when it arrives, and later again.

    A storage has the columns ``LAST``.
    """

    def __init__(
        self, storage: SlotStorage, settings: MemorySettings, generator: np.random.Generator
    ) -> None:
        capacity, columns = storage.capacity, storage.columns
        self._rewards = columns[LAST[0]].reshape(capacity, -1)
        self._values = columns[LAST[2]].reshape(capacity, columns[LAST[2]].size // capacity)
        self._returns = np.zeros(self._values.shape)
        #: float64 [capacity]: the weight of each entry, whether it may be drawn or not.
        self._weights = np.zeros(capacity)
        self._by_weight = DecayingWeights(capacity, generator, settings)
        self._rings, self._settings = storage, settings
        self.scale, self.episodes = PriorityScale(), 0
        super().__init__(
            storage,
            Endings(settings, self._returns),
            self._by_weight,
            Limiter(),
            kind="rollouts of Memoire, by their errors",
        )

    @property
    def most_rows_at_once(self) -> float:
        """See Table: as many as a slot has room for."""
        return self._rings.size

    @property
    def total_weight(self) -> float:
        """The sum of the weights of all that may be drawn."""
        return self._by_weight.weight

    def appended(self, slot: int, rows: IntArray) -> None:
        """See Table: renew the returns and weights of the episodes of ``rows`` [N]."""
        flags, count = self._storage.flags[rows], len(rows)
        self.counts.inserted += count
        self.episodes += int(np.count_nonzero(flags & ENDS)) if count else 1
        starts = np.flatnonzero(self._storage.positions[rows] == 0)
        bounds = np.unique([0, *starts, count])
        changed = [
            self._weigh(slot, rows[begin:end], behind=count - end)
            for begin, end in pairwise(bounds.tolist())
        ]
        self._make_room(slot)
        held = self._rings.held(slot)
        # What has become an item, or is one no more: what waited for these, and the oldest.
        waited = self._rings.ring(slot, max(held - count - self._settings.multi_step, 0), held)
        history = self._settings.rollout_len + self._settings.frame_stack
        oldest = self._rings.ring(slot, 0, min(history, held))
        renewed = np.unique(np.concatenate([waited, oldest, *changed]))
        self._renew(renewed[self._storage.serials[renewed] != NONE])

    def renew(self) -> None:
        """Find anew which entries may be drawn."""
        self._renew(np.flatnonzero(self._storage.serials != NONE))

    def draw(self, count: int, charge: int | None = None, *, empty: Empty = np.empty) -> Sample:
        """See Table; ``WEIGHT`` is by which each was drawn, and its weight decays."""
        total = self.total_weight
        sample = super().draw(count, charge, empty=empty)
        rows = sample.keys % self._storage.capacity
        self._weights[rows] = self._by_weight.weights(rows)
        sample.columns[WEIGHT] = (sample.probabilities * total).astype(np.float32)
        return sample

    def _weigh(self, slot: int, rows: IntArray, behind: int) -> IntArray:
        """Renew returns and weights of the episode that ``rows`` [N] belong to, its newest.

        ``behind`` further rows follow in the ring. Return the rows that have other weights.
        """
        newest, settings = rows[-1], self._settings
        if self._values.shape[1] == 0:
            self._weights[rows] = 1.0
            return rows
        end = self._rings.held(slot) - behind
        begin = max(end - 1 - int(self._storage.positions[newest]), 0)
        episode = EpisodeRows(
            self._rewards, self._values, self._returns, self._rings.ring(slot, begin, end)
        )
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
        held = self._rings.held(slot)
        rows = self._rings.ring(slot, 0, held)
        begins = np.flatnonzero(self._storage.positions[rows] == 0)
        gone = int(begins[0]) if self._settings.do_padding and len(begins) else 0
        if 0 < most <= len(begins):
            gone = max(gone, int(begins[-most]))
        if gone:
            self._storage.evict(rows[:gone])

    def _renew(self, rows: IntArray) -> None:
        """Let ``rows`` [N] be drawn by their weights if the rows that they need are there."""
        may = self._view.items(self._storage, rows)
        self._by_weight.weigh(rows, np.where(may, self._weights[rows], 0.0))

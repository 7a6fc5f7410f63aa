"""What ``ReplayMemory`` does: entries of many clients, drawn by their errors, in rollouts.

Seed 001, "ReplayMemory", under its names.
"""

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.compat.memoire.entries import Entries
from relaax.compat.memoire.entry import (
    LAST,
    WEIGHT,
    Batch,
    MemoryClosed,
    as_tuples,
    require_rewards,
    schema_of,
    templates_of,
)
from relaax.compat.memoire.returns import PriorityScale, traced_back
from relaax.compat.memoire.ring import Episode, Ring
from relaax.compat.memoire.rollouts import may_be_drawn
from relaax.compat.memoire.settings import MemorySettings
from relaax.errors import ConfigurationError
from relaax.replay.priority_tree import PriorityTree
from relaax.replay.replay import NotReady
from relaax.replay.schema import Column, Schema
from relaax.replay.table import Sample

IntArray = npt.NDArray[np.int64]


class Caches:
    """The newest sample of each slot, and the sum of the weights that it was drawn by.

    A slot is drawn in proportion to that sum, and its items in their order. So an item is as
    probable as if one memory had the entries of all clients, as far as the sums are not old.
    """

    def __init__(self, count: int, generator: np.random.Generator) -> None:
        self._generator = generator
        self._samples: dict[int, Sample] = {}
        self._totals = np.zeros(count)
        #: int64 [slots]: how many items of each were drawn, and how many there are.
        self._taken = np.zeros(count, np.int64)
        self._sizes = np.zeros(count, np.int64)

    def __len__(self) -> int:
        """Return how many items there are that may be drawn."""
        return int((self._sizes - self._taken).sum())

    def put(self, slot: int, sample: Sample, total: float) -> None:
        """Keep a sample in place of what the slot had; ValueError for one without weight."""
        if not (len(sample.keys) and 0 < total < np.inf):
            raise ValueError(f"{len(sample.keys)} items of a total weight of {total:g} were sent")
        self._samples[slot] = sample
        self._totals[slot] = total
        self._taken[slot], self._sizes[slot] = 0, len(sample.keys)

    def draw(self, count: int, reuses: bool) -> Sample:
        """Draw ``count`` items; unless it ``reuses`` them, there must be as many."""
        slots, rows = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for number in range(count):
            weights = np.where(self._sizes > 0, self._totals, 0.0).cumsum()
            slot = int(np.searchsorted(weights, self._generator.random() * weights[-1], "right"))
            slots[number], rows[number] = slot, self._taken[slot]
            self._take(slot, reuses)
        return self._joined(slots, rows)

    def _take(self, slot: int, reuses: bool) -> None:
        self._taken[slot] += 1
        if self._taken[slot] == self._sizes[slot]:
            self._taken[slot] = 0
            if not reuses:
                self._sizes[slot] = 0

    def _joined(self, slots: IntArray, rows: IntArray) -> Sample:
        """Return item ``rows`` [N] of the samples of ``slots`` [N], in this order."""
        drawn = [(slot, self._samples[slot], rows[slots == slot]) for slot in np.unique(slots)]
        back = np.argsort(np.argsort(slots, kind="stable"))
        shares = self._totals / self._totals.sum()
        count = len(shares)
        probabilities = [part.probabilities[at] * shares[slot] for slot, part, at in drawn]
        return Sample(
            keys=np.concatenate([part.keys[at] * count + slot for slot, part, at in drawn])[back],
            probabilities=np.concatenate(probabilities)[back],
            columns={
                name: np.concatenate([part.columns[name][at] for _, part, at in drawn])[back]
                for name in drawn[0][1].columns
            },
            items=sum(part.items for part in self._samples.values()),
            least_probability=min(
                part.least_probability * shares[slot] for slot, part in self._samples.items()
            ),
        )


FloatArray = npt.NDArray[np.float64]


def drawn(
    tree: PriorityTree, count: int, generator: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return ``count`` places and their priorities, drawn with replacement."""
    places = tree.find(generator.random(count) * tree.total)
    return places, tree.priorities(places)


def drawn_with_decay(
    tree: PriorityTree, count: int, decay: float, generator: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return places [N] and their priorities [N] when they were drawn, one after the other.

    The priority of a place is multiplied by ``decay`` < 1 when it is drawn. N is ``count``, or less
    if the tree has nothing left.

    Many are proposed at once, by the priorities before: of a place that was drawn k times since,
    one in ``decay ** -k`` proposals counts. So each draw is as probable as if it was made alone.
    """
    places: list[int] = []
    weights: list[float] = []
    while len(places) < count and tree.total > 0:
        proposed, before = drawn(tree, count - len(places), generator)
        times: Counter[int] = Counter()
        for place, weight, chance in zip(
            proposed.tolist(), before.tolist(), generator.random(len(proposed)), strict=True
        ):
            left = decay ** times[place]
            if chance < left:
                times[place] += 1
                places.append(place)
                weights.append(weight * left)
        chosen = np.array(list(times), np.int64)
        counts = np.array(list(times.values()), np.float64)
        tree.set(chosen, tree.priorities(chosen) * decay**counts)
    return np.array(places, np.int64), np.array(weights, np.float64)


Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]


class ReplayMemory(MemorySettings):
    """Entries of ``num_slot`` clients, at most ``max_step`` of each; for many threads.

    ``entry``: arrays that show the type and shape of each field. The last three are the reward, the
    probability of the action and the value. ConfigurationError for others.
    """

    __slots__ = (
        "_caches", "_entries", "_generator", "_is_closed", "_positive", "_rings", "_scale", "_tree",
        "_weights", "entry_size", "max_step", "num_slot", "prob_buf", "qvest_buf", "reward_buf",
        "schema", "total_episodes", "total_steps", "uuid", "value_buf", "view",
    )  # fmt: skip

    def __init__(
        self,
        entry: Sequence[npt.ArrayLike],
        max_step: int,
        n_slot: int,
        generator: np.random.Generator | None = None,
    ) -> None:
        if max_step < 1 or n_slot < 1:
            raise ConfigurationError(
                f"max_step and n_slot must be at least 1, are {max_step} and {n_slot}"
            )
        self.schema = schema_of(entry)
        require_rewards(self.schema)
        self.view = templates_of(self.schema)
        self.reward_buf, self.prob_buf, self.value_buf = self.view[-len(LAST) :]
        self.qvest_buf = np.zeros_like(self.value_buf)
        self.entry_size = self.schema.bytes + self.qvest_buf.nbytes
        self.num_slot, self.max_step = n_slot, max_step
        self.uuid = secrets.token_hex(8)
        self.total_steps = self.total_episodes = 0
        super().__init__(self.reward_buf.size, max_step)
        self._entries = Entries(self.schema, n_slot, max_step)
        self._weights = np.zeros(n_slot * max_step)
        self._tree = PriorityTree(n_slot * max_step)
        self._rings = [Ring(slot * max_step, max_step) for slot in range(n_slot)]
        self._scale = PriorityScale()
        self._generator = generator or np.random.default_rng()
        self._positive = 0
        self._caches = Caches(n_slot, self._generator)
        self._is_closed = False

    @property
    def ma_sqa(self) -> float:
        """The mean squared error so far, which errors are compared with."""
        return self._scale.mean_square

    @property
    def total_weight(self) -> float:
        """The sum of all weights: an entry of weight W is drawn with W / total_weight."""
        return self._tree.total

    def __len__(self) -> int:
        """Return how many entries there are now."""
        return sum(ring.written - ring.oldest for ring in self._rings)

    def push(self, slot: int, entries: Mapping[str, Array], terms: BoolArray) -> None:
        """Store entries [N, ...] of a slot by the names of their fields, in their order.

        ``terms`` bool [N] says which of them end an episode. ValueError, which names fields, for
        entries of another kind.
        """
        self.schema.check(entries, len(terms))
        with self.changed:
            begin = 0
            for end in (*(np.flatnonzero(terms) + 1).tolist(), len(terms)):
                if end > begin:
                    part = {name: entries[name][begin:end] for name in entries}
                    self._push_run(self._rings[slot], part, end - begin, bool(terms[end - 1]))
                begin = end
            self.changed.notify_all()

    def put_cache(self, slot: int, sample: Sample, total: float) -> None:
        """Let draws take what a client has drawn of its own memory, whose weights sum to ``total``.

        ValueError, which names fields, for a sample of another kind than this memory's own.
        """
        with self.changed:
            self._require(sample)
            self._caches.put(slot, sample, total)
            self.changed.notify_all()

    def end_episode(self, slot: int) -> None:
        """Let the unfinished episode of a slot, if any, end as one that was cut off."""
        with self.changed:
            ring = self._rings[slot]
            if ring.goes_on:
                self._end_episode(ring)

    def clear(self, slot: int) -> None:
        """Forget all entries of a slot."""
        with self.changed:
            ring = self._rings[slot]
            gone = ring.places(ring.clear())
            self._weights[gone] = 0.0
            self._set_priorities(gone, self._weights[gone])

    def close(self) -> None:
        """Let what waits for entries raise MemoryClosed."""
        with self.changed:
            self._is_closed = True
            self.changed.notify_all()

    def get_data(self, batch_size: int, timeout_s: float | None = None) -> Batch:
        """Draw rollouts, and wait for entries if there are none.

        Return each field of an entry, then its return, as arrays [B, rollout_len, ...], and the
        weights float32 [B] by which entries were drawn; with ``multi_step``, fields twice: of the
        rollouts, and of those so many entries later. A rollout ends with the drawn entry. NotReady
        after ``timeout_s``, MemoryClosed.
        """
        return as_tuples(self.sample(batch_size, timeout_s))

    def sample(self, count: int, timeout_s: float | None = None) -> Sample:
        """Draw as ``get_data`` does; return what is drawn by names, and how probable it was."""
        if count < 1:
            raise ValueError(f"at least 1 entry is drawn, not {count}")
        with self.changed:
            if not self.changed.wait_for(lambda: self._may_draw(count), timeout_s):
                there = len(self._caches) if self.cache_size else self._positive
                raise NotReady(f"{there} entries can be drawn, of which {count} are asked")
            if self._is_closed:
                raise MemoryClosed("the memory was closed")
            if self.cache_size:
                return self._caches.draw(count, self.reuse_cache)
            total, items, least = self._tree.total, self._positive, self._tree.least
            places, weights = self._drawn(count)
            columns = self._read(places) | {WEIGHT: weights.astype(np.float32)}
            keys = self._entries.numbers[places] * self.num_slot + places // self.max_step
        return Sample(keys, weights / total, columns, items, least / total)

    def renew(self) -> None:
        """Find anew which entries may be drawn."""
        for ring in self._rings:
            self._renew(ring, ring.oldest)

    def _require(self, sample: Sample) -> None:
        """Raise ValueError unless a sample has the columns that this memory's own ones have."""
        own = self._read(np.zeros(0, np.int64)) | {WEIGHT: np.zeros(0, np.float32)}
        schema = Schema({name: Column(own[name].dtype, own[name].shape[1:]) for name in own})
        schema.check(sample.columns, len(sample.keys))

    def _may_draw(self, count: int) -> bool:
        if self.cache_size and not self._is_closed:
            return len(self._caches) >= (1 if self.reuse_cache else count)
        needed = count if self.priority_decay == 0 else 1
        return self._is_closed or self._positive >= needed

    def _drawn(self, count: int) -> tuple[IntArray, FloatArray]:
        if self.priority_decay == 1:
            return drawn(self._tree, count, self._generator)
        places, weights = drawn_with_decay(self._tree, count, self.priority_decay, self._generator)
        changed = np.unique(places)
        self._positive -= int(np.count_nonzero(self._tree.priorities(changed) == 0))
        self._weights[changed] = self._tree.priorities(changed)
        return places, weights

    def _read(self, places: IntArray) -> dict[str, Array]:
        oldest = np.array([ring.oldest for ring in self._rings])
        return self._entries.read(places, self, oldest)

    def _push_run(
        self, ring: Ring, entries: Mapping[str, Array], count: int, is_term: bool
    ) -> None:
        """Store entries of one episode."""
        oldest = ring.oldest
        episode = ring.write(count, self.do_padding, self.max_episode)
        self._drop(ring, oldest)
        kept = min(count, ring.size)
        numbers = np.arange(ring.written - kept, ring.written)
        places = ring.places(numbers)
        rest = {name: entries[name][count - kept :] for name in entries}
        self._entries.write(places, rest, numbers, episode.first)
        self.total_steps += count
        first = self._weigh(ring, episode, kept, is_term)
        self._renew(ring, min(first, ring.written - kept - self.multi_step))
        if is_term:
            self._end_episode(ring)

    def _drop(self, ring: Ring, oldest: int) -> None:
        """Let entries from ``oldest`` on, which a ring has lost, be drawn no more."""
        lost = ring.places(np.arange(oldest, min(ring.oldest, oldest + ring.size)))
        self._weights[lost] = 0.0
        self._set_priorities(lost, self._weights[lost])

    def _weigh(self, ring: Ring, episode: Episode, pushed: int, is_term: bool) -> int:
        """Renew the returns of an episode, and the weights; return the first renewed entry."""
        numbers = np.arange(max(episode.first, ring.oldest), episode.end)
        places = ring.places(numbers)
        if self.value_buf.size == 0:
            self._weights[places[-pushed:]] = 1.0
            return int(numbers[-pushed])
        rule = self.rule
        rows = self._entries.rows(places)
        first = traced_back(rule, rows, pushed, is_term, self.traceback_threshold)
        renewed = places[first:]
        errors = rule.errors(rows.returns[renewed], rows.values[renewed].astype(np.float64))
        self._weights[renewed] = self._scale.priorities(
            errors, self.priority_exponent, self.error_rate
        )
        return int(numbers[first])

    def _renew(self, ring: Ring, begin: int) -> None:
        """Let entries from ``begin`` on, and the oldest, be drawn if they have what they need."""
        history = self.rollout_len + self.frame_stack
        head = np.arange(ring.oldest, min(ring.oldest + history, ring.written))
        numbers = np.union1d(head, np.arange(max(begin, ring.oldest), ring.written))
        places = ring.places(numbers)
        may = may_be_drawn(
            ring,
            numbers,
            rollout_len=self.rollout_len,
            frame_stack=self.frame_stack,
            multi_step=self.multi_step,
            pads=self.do_padding,
        )
        self._set_priorities(places, np.where(may, self._weights[places], 0.0))

    def _end_episode(self, ring: Ring) -> None:
        ring.end_episode()
        self.total_episodes += 1
        if self.multi_step:
            self._renew(ring, ring.written - self.multi_step)

    def _set_priorities(self, places: IntArray, priorities: FloatArray) -> None:
        """Give places priorities, and count those above 0."""
        before = np.count_nonzero(self._tree.priorities(places))
        self._positive += int(np.count_nonzero(priorities) - before)
        self._tree.set(places, priorities)

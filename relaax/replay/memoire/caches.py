"""What clients have drawn of their own memories: ``cache_size`` of Memoire's version 3."""

import numpy as np
import numpy.typing as npt

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

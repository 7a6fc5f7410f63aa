"""A client's own memory, of which samples are sent: ``cache_size`` of Memoire's version 3."""

import numpy as np

from relaax.replay.memoire.memory import ReplayMemory
from relaax.replay.memoire.stub import SlotInfo
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import START, TERMINATED
from relaax.replay.table import Sample

#: Entries that are stored at once.
ENTRIES_AT_ONCE = 32


class LocalMemory:
    """Entries of one client, with the properties of the server's memory."""

    def __init__(self, info: SlotInfo) -> None:
        self._memory = ReplayMemory(info.view, info.max_step, 1)
        for name, value in info.settings.items():
            setattr(self._memory, name, value)
        # Draws are from here; how many are sent at once is not the memory's.
        self._memory.cache_size, self.cache_size = 0, self._memory.cache_size
        self._waiting: list[StepBatch] = []

    def put(self, entry: StepBatch) -> None:
        """Store an entry, at the latest with the next sample."""
        if entry.flags[0] & START:
            self._store()
            self._memory.end_episode(0)
        self._waiting.append(entry)
        if len(self._waiting) >= ENTRIES_AT_ONCE:
            self._store()

    def sample(self) -> tuple[Sample, float]:
        """Draw what is sent, and return the sum of all weights with it; NotReady without any."""
        self._store()
        return self._memory.sample(self.cache_size, timeout_s=0), self._memory.total_weight

    def _store(self) -> None:
        if self._waiting:
            entries = StepBatch.concatenated(self._waiting)
            terms = (entries.flags & TERMINATED).astype(np.bool_)
            self._memory.push(0, entries.columns, terms)
            self._waiting.clear()

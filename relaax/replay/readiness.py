"""When the rows of a slot have become items."""

import numpy as np
import numpy.typing as npt

from relaax.replay.storage import ENDS, Storage

IntArray = npt.NDArray[np.int64]


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

    def forget(self, slot: int, rows: IntArray) -> None:
        """Forget ``rows`` of ``slot``, which are about to be evicted."""
        waiting = self._waiting.get(slot)
        if waiting is not None:
            self._keep(slot, waiting[~np.isin(waiting, rows)])

    def _keep(self, slot: int, rows: IntArray) -> None:
        """Note which rows wait; of slots that never come again nothing is left."""
        if len(rows):
            self._waiting[slot] = rows
        else:
            self._waiting.pop(slot, None)

    def contents(self) -> IntArray:
        """Return all rows int64 [N] that wait, those of a slot in their order."""
        return np.concatenate([np.zeros(0, np.int64), *self._waiting.values()])

    def restore(self, rows: IntArray) -> None:
        """Go on from what ``contents`` has returned; the storage has been restored."""
        slots = self._storage.slots[rows]
        self._waiting = {int(slot): rows[slots == slot] for slot in np.unique(slots)}

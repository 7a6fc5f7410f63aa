"""Sequences of steps that go on across the ends of episodes, each step in one of them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.gather import Empty, gather
from relaax.replay.storage import ENDS, FINAL, NONE, START, Storage
from relaax.replay.views import BoolArray, IntArray, rows_behind

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Rollouts:
    """Each ``length`` rows that a slot has stored, and the row after them.

    Columns are time-major, [burn_in + length + 1, N, ...]. The last row is for the bootstrap value,
    and is the first one of the next item. Beside the columns there are ``flags``; ``begins``, 1 in
    the first known row of an episode; and ``valid``, 1 in a row of the ``length`` with an action.
    Before them are up to ``burn_in`` rows of the same episode, from which a recurrent network finds
    its state (Kapturowski et al. 2019, https://openreview.net/forum?id=r1lyTjAqYX, section 3); if
    there are fewer, the first row is repeated with ``begins``.
    """

    length: int
    burn_in: int = 0
    crosses_episodes: bool = field(default=True, init=False)

    @property
    def stride(self) -> int:
        """See View."""
        return self.length

    @property
    def item_axis(self) -> int:
        """See View."""
        return 1

    @property
    def ahead(self) -> int:
        """See View."""
        return self.length

    @property
    def behind(self) -> int:
        """See View."""
        return self.burn_in

    def items(self, storage: Storage, rows: IntArray) -> BoolArray:
        """See View: a row at each ``length`` of a slot."""
        chosen: BoolArray = storage.numbers[rows] % self.length == 0
        return chosen

    def read(self, storage: Storage, rows: IntArray, empty: Empty = np.empty) -> dict[str, Array]:
        """See View."""
        before, belongs = rows_behind(storage, rows, self.burn_in)
        found = np.concatenate([before, self._after(storage, rows)])
        columns = {name: gather(column, found, empty) for name, column in storage.columns.items()}
        columns["flags"] = storage.flags[found]
        columns["begins"] = self._begins(storage, found, belongs)
        columns["valid"] = columns["flags"] & FINAL == 0
        columns["valid"][: self.burn_in] = False
        columns["valid"][-1] = False
        return columns

    def _after(self, storage: Storage, rows: IntArray) -> IntArray:
        found = np.empty((self.length, len(rows)), np.int64)
        for step in range(self.length):
            rows = found[step] = storage.following[rows]
        return found

    def _begins(self, storage: Storage, found: IntArray, belongs: BoolArray) -> BoolArray:
        """Return where a recurrent network begins anew: bool [burn_in + length + 1, N]."""
        earlier = storage.before[found]
        follows_an_end = (earlier != NONE) & (storage.flags[earlier] & ENDS != 0)
        begins: BoolArray = follows_an_end | (storage.flags[found] & START != 0)
        # Rows that stand for missing ones, and the first one behind them.
        begins[: self.burn_in] |= ~belongs[:-1]
        begins[1 : self.burn_in + 1] |= ~belongs[:-1]
        return begins

"""The entries of all slots as columns, and what is read of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.compat.memoire.entry import LAST, NEXT, QVEST
from relaax.compat.memoire.returns import EpisodeRows
from relaax.compat.memoire.rollouts import Episodes, ending_at, shifted
from relaax.compat.memoire.settings import MemorySettings
from relaax.replay.schema import Schema

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

_REWARD, _PROB, _VALUE = LAST


class Entries:
    """Room for ``max_step`` entries in each of ``n_slot`` slots, one slot behind another."""

    def __init__(self, schema: Schema, n_slot: int, max_step: int) -> None:
        capacity = n_slot * max_step
        value = schema.columns[_VALUE]
        self._size = max_step
        self._columns = schema.rows(capacity)
        self._value_shape = value.shape
        self._rewards = self._columns[_REWARD].reshape(capacity, -1)
        self._values = self._columns[_VALUE].reshape(capacity, int(np.prod(value.shape)))
        self._returns = np.zeros(self._values.shape)
        self._episodes = Episodes.of(capacity)

    @property
    def numbers(self) -> IntArray:
        """By place: how many entries came to the slot before this one."""
        return self._episodes.numbers

    def rows(self, places: IntArray) -> EpisodeRows:
        """Return what the returns of an episode at ``places`` [L] are found from."""
        return EpisodeRows(self._rewards, self._values, self._returns, places)

    def write(
        self, places: IntArray, entries: Mapping[str, Array], numbers: IntArray, first: int
    ) -> None:
        """Store entries [N, ...] of an episode whose first one has the number ``first``."""
        for name, column in self._columns.items():
            column[places] = entries[name]
        self._returns[places] = self._values[places]
        self._episodes.numbers[places] = numbers
        self._episodes.first[places] = first

    def read(
        self, places: IntArray, settings: MemorySettings, oldest: IntArray
    ) -> dict[str, Array]:
        """Return all fields, and returns, of the rollouts that end at ``places`` [B].

        ``oldest`` [slots] are the numbers of the oldest entries.
        """
        found = self._rollouts(places, settings, oldest)
        if settings.multi_step:
            ahead = self._episodes.ahead(places, self._size, settings.multi_step)
            later = self._rollouts(shifted(places, ahead, self._size), settings, oldest)
            found |= {NEXT + name: array for name, array in later.items()}
        return found

    def _rollouts(
        self, places: IntArray, settings: MemorySettings, oldest: IntArray
    ) -> dict[str, Array]:
        before = self._before(places, oldest) if settings.do_padding else None
        rows = ending_at(places, settings.rollout_len, self._size, before)
        found = {name: column[rows] for name, column in self._columns.items()}
        if settings.frame_stack > 1:
            before = self._before(rows, oldest)
            first = next(iter(self._columns))
            frames = ending_at(rows, settings.frame_stack, self._size, before)
            found[first] = self._columns[first][frames]
        shape = (*rows.shape, *self._value_shape)
        found[QVEST] = self._returns[rows].reshape(shape).astype(np.float32)
        return found

    def _before(self, places: IntArray, oldest: IntArray) -> IntArray:
        return self._episodes.before(places, oldest[places // self._size])

"""The places that environments have on this RLX server, and among all of the training."""

import fcntl
import mmap
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

#: Environments beyond so many share the last place.
MOST_PLACES = 65_536

_BYTES = 8

#: The owner of free places.
_NOBODY = 0


class PlaceTable:
    """Gives environments the smallest free numbers; workers share it, if ``is_shared``.

    It is made before anything is forked. Places belong to an owner, a worker's row from 1 on: the
    places of a killed worker are released.
    """

    def __init__(self, most: int = MOST_PLACES, is_shared: bool = True) -> None:
        cells = np.frombuffer(mmap.mmap(-1, 2 * most * _BYTES), np.int64)
        self._owners: IntArray = cells[:most]
        #: The place of each among all environments of the training, as far as it is known.
        self._in_training: IntArray = cells[most:]
        self._lock: int | None = None
        if is_shared:
            self._lock = os.memfd_create("places")
            weakref.finalize(self, os.close, self._lock)

    def take(self, owner: int, count: int) -> IntArray:
        """Return places for so many environments."""
        with self._locked():
            free = np.flatnonzero(self._owners == _NOBODY)[:count]
            self._owners[free] = owner
            self._in_training[free] = free
        last = np.full(count - len(free), len(self._owners) - 1)
        return np.concatenate([free, last])

    def give_back(self, owner: int, places: IntArray) -> None:
        """Take back places of an owner."""
        self._owners[places[self._owners[places] == owner]] = _NOBODY

    def release(self, owner: int) -> None:
        """Take back all places of an owner."""
        self._owners[self._owners == owner] = _NOBODY

    def held(self) -> list[int]:
        """Return the places that are taken."""
        held: list[int] = np.flatnonzero(self._owners != _NOBODY).tolist()
        return held

    def note(self, places: Sequence[int], in_training: Sequence[int]) -> None:
        """Take note of the places that these have among all environments of the training."""
        self._in_training[list(places)] = in_training

    def in_training(self, place: int) -> int:
        """Return the place among all environments of the training."""
        return int(self._in_training[place])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time look for free places; a killed process leaves no lock."""
        if self._lock is None:
            yield
            return
        fcntl.lockf(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN)


class OwnPlaces:
    """The places of one owner."""

    def __init__(self, table: PlaceTable, owner: int) -> None:
        self._table = table
        self._owner = owner
        self.in_training = table.in_training

    def take(self, count: int) -> IntArray:
        """Return places for so many environments."""
        return self._table.take(self._owner, count)

    def give_back(self, places: IntArray) -> None:
        """Take them back."""
        self._table.give_back(self._owner, places)

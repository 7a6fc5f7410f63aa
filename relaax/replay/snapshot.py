"""Copies what is stored while more is stored."""

import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

#: So much is copied at once.
BYTES_AT_ONCE = 4 * 1024 * 1024


class Snapshot:
    """Columns [capacity, ...] of certain ``rows`` int64 [N], as they are when this is made.

    The rows are copied a few blocks at a time; between the pieces others may be written, but those
    of a block that is about to be evicted are copied before. Each of ``blocks`` is the first row of
    one; its rows stand together in ``rows``, and follow each other.
    """

    def __init__(self, columns: Mapping[str, Array], rows: IntArray, blocks: IntArray) -> None:
        self._from = columns
        #: By name [N, ...]: complete when ``copy_some`` has returned False.
        self.columns = {
            name: np.empty((len(rows), *column.shape[1:]), column.dtype)
            for name, column in columns.items()
        }
        bounds = [*np.flatnonzero(np.isin(rows, blocks)).tolist(), len(rows)]
        places = [slice(begin, end) for begin, end in pairwise(bounds)]
        #: By the first row of a block that is still to be copied: where its rows go. The oldest
        #: comes last, since the last of a dict is found at once, and the first only behind all that
        #: were taken out before it.
        self._left = {int(rows[place.start]): place for place in reversed(places)}
        row_bytes = sum(column[:1].nbytes for column in columns.values())
        self._rows_at_once = max(1, BYTES_AT_ONCE // max(1, row_bytes))

    def copy_some(self) -> bool:
        """Copy some of what is left; return whether there was anything."""
        if not self._left:
            return False
        sys.audit("relaax.replay.copy")
        count = 0
        while self._left and count < self._rows_at_once:
            count += self._copy(*self._left.popitem())
        return True

    def evicted(self, rows: IntArray) -> None:
        """Copy ``rows`` before they are gone, if that is still to be done."""
        begin = int(rows[0])
        place = self._left.pop(begin, None)
        if place is not None:
            self._copy(begin, place)

    def _copy(self, begin: int, place: slice) -> int:
        """Copy the rows of a block from ``begin`` on to ``place``; return how many."""
        count = int(place.stop - place.start)
        for name, column in self._from.items():
            self.columns[name][place] = column[begin : begin + count]
        return count

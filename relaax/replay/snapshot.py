"""Copies stored steps while more are stored."""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

#: So much is copied at once.
BYTES_AT_ONCE = 4 * 1024 * 1024


class Snapshot:
    """Columns [capacity, ...] of certain ``rows`` int64 [N], as of the making of this.

    The rows are copied some at a time, in their order; between the pieces other rows may be
    written, but a row that is about to be evicted is copied before.
    """

    def __init__(self, columns: Mapping[str, Array], rows: IntArray) -> None:
        self._from = columns
        #: By name [N, ...]: complete when ``copy_some`` has returned False.
        self.columns = {
            name: np.empty((len(rows), *column.shape[1:]), column.dtype)
            for name, column in columns.items()
        }
        self._rows = rows
        #: Of each row, its place in ``rows``; -1 once it is copied, and for others.
        self._places = np.full(max((len(each) for each in columns.values()), default=0), -1)
        self._places[rows] = np.arange(len(rows))
        #: How many rows of the order have been copied, or were before their turn.
        self._done = 0
        row_bytes = sum(column[:1].nbytes for column in columns.values())
        self._rows_at_once = max(1, BYTES_AT_ONCE // max(1, row_bytes))

    def copy_some(self) -> bool:
        """Copy some of the remaining rows; return whether there were any."""
        if self._done == len(self._rows):
            return False
        sys.audit("relaax.replay.copy")
        rows = self._rows[self._done : self._done + self._rows_at_once]
        self._done += len(rows)
        self.evicted(rows)
        return True

    def evicted(self, rows: IntArray) -> None:
        """Copy ``rows`` before they are gone, if that is still to be done."""
        rows = rows[self._places[rows] >= 0]
        places = self._places[rows]
        self._places[rows] = -1
        for name, column in self._from.items():
            self.columns[name][places] = column[rows]

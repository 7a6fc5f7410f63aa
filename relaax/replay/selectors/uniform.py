"""Every item as probable as every other."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.selectors.selector import Drawn, IntArray

ABSENT = -1


class DenseRows:
    """A set of rows below ``capacity``, in places from 0 on without gaps.

    A row that is removed gives its place to the last one, so that any row is found, and removed, in
    the same time however many there are.
    """

    def __init__(self, capacity: int) -> None:
        self._rows = np.empty(capacity, np.int64)
        self._places = np.full(capacity, ABSENT, np.int64)
        self._count = 0

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._count

    @property
    def rows(self) -> IntArray:
        """All rows, int64 [N], as a view."""
        return self._rows[: self._count]

    def add(self, rows: IntArray) -> None:
        """Take up ``rows`` int64 [N], which are not in the set."""
        places = np.arange(self._count, self._count + len(rows))
        self._rows[places] = rows
        self._places[rows] = places
        self._count += len(rows)

    def present(self, rows: IntArray) -> IntArray:
        """Return the ``rows`` that are in the set."""
        known: IntArray = rows[self._places[rows] != ABSENT]
        return known

    def remove(self, rows: IntArray) -> None:
        """Take ``rows`` out, all of which are in the set, each named once."""
        places = self._places[rows]
        self._places[rows] = ABSENT
        kept = self._count - len(rows)
        tail = self._rows[kept : self._count]
        moved = tail[self._places[tail] != ABSENT]
        holes = places[places < kept]
        self._rows[holes] = moved
        self._places[moved] = holes
        self._count = kept


class Uniform:
    """Draws with replacement, each item as probable as every other."""

    def __init__(self, capacity: int, generator: np.random.Generator) -> None:
        self._rows = DenseRows(capacity)
        self._generator = generator

    def __len__(self) -> int:
        """See Selector."""
        return len(self._rows)

    @property
    def least_probability(self) -> float:
        """See Selector."""
        return 1.0 / len(self._rows)

    @property
    def weight(self) -> float:
        """See Selector."""
        return float(len(self._rows))

    @property
    def most(self) -> float:
        """See Selector."""
        return math.inf

    def add(self, rows: IntArray) -> None:
        """See Selector."""
        self._rows.add(rows)

    def remove(self, rows: IntArray) -> None:
        """See Selector."""
        self._rows.remove(self._rows.present(rows))

    def draw(self, count: int) -> Drawn:
        """See Selector."""
        places = self._generator.integers(len(self._rows), size=count)
        return Drawn(self._rows.rows[places], np.full(count, 1.0 / len(self._rows)))

    def contents(self) -> dict[str, npt.NDArray[Any]]:
        """See Selector."""
        return {"rows": self._rows.rows.copy()}

    def restore(self, contents: Mapping[str, npt.NDArray[Any]]) -> None:
        """See Selector."""
        self.add(contents["rows"])

"""Every item as probable as every other."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.selectors.dense_rows import DenseRows
from relaax.replay.selectors.selector import Drawn, IntArray


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

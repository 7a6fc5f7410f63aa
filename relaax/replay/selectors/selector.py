"""The interface of selectors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Drawn:
    """Items that were drawn: their rows int64 [N], and how probable each was, float64 [N]."""

    rows: IntArray
    probabilities: FloatArray


class Selector(Protocol):
    """Knows a table's items by their rows, and draws of them."""

    def __len__(self) -> int:
        """Return how many items there are."""

    @property
    def least_probability(self) -> float:
        """How probable the item is that is drawn most seldom; the weight must be above 0."""

    @property
    def weight(self) -> float:
        """The weight of this table among several: the sum of the items' own weights."""

    @property
    def most(self) -> float:
        """How many items can be drawn at once; infinite where they are drawn with replacement."""

    def add(self, rows: IntArray) -> None:
        """Take up ``rows`` int64 [N], which are not known yet, in this order."""

    def remove(self, rows: IntArray) -> None:
        """Forget ``rows`` int64 [N]; unknown ones are ignored."""

    def draw(self, count: int) -> Drawn:
        """Draw ``count`` items; there must be as many, where they are drawn once.

        The weight must be above 0.
        """

    def contents(self) -> dict[str, npt.NDArray[Any]]:
        """Return the state that another selector of this kind needs to go on, by name."""

    def restore(self, contents: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from the state of ``contents``; there must be no item yet."""

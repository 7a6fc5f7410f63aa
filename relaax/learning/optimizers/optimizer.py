"""What the parameter store asks of an optimiser."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy.typing as npt

from relaax.algorithm_base import FloatVector

#: What an optimiser remembers, by the names that checkpoints give it.
Slots = Mapping[str, npt.NDArray[Any]]


class Optimizer(Protocol):
    """Moves a flat vector, and remembers what it needs for the next step."""

    def slots(self) -> Slots:
        """Return what it remembers: vectors float32 [size], and counts int64 [1].

        The arrays are its own: a restored training writes into them. Each name is the optimiser's,
        a slash and the slot's: ``adam/mean``. So a checkpoint tells which optimiser it is of.
        """

    def part(self, begin: int, end: int, size: int) -> "Optimizer":
        """Return one of the same kind that remembers nothing, for the entries [begin, end).

        ``size`` is that of the whole vector. ValueError for a part that cannot be moved alone.
        """

    def apply(self, parameters: FloatVector, gradient: FloatVector, learning_rate: float) -> None:
        """Take one step down ``gradient`` [size], changing ``parameters`` [size] in place."""

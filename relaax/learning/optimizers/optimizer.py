"""What the parameter store asks of an optimiser."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

FloatVector = npt.NDArray[np.float32]


class Optimizer(Protocol):
    """Moves a flat vector, and remembers what it needs for the next step."""

    def slots(self) -> Mapping[str, FloatVector]:
        """Return what it remembers, float32 [size] each, by the names that checkpoints give it.

        The arrays are its own: a restored training writes into them.
        """

    def apply(self, parameters: FloatVector, gradient: FloatVector, learning_rate: float) -> None:
        """Take one step down ``gradient`` [size], changing ``parameters`` [size] in place."""

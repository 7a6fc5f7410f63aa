"""How much more often a step is drawn whose value was wrong (seed 001, ``priority_exponent``)."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

#: Least mean squared error that others are compared with.
LEAST = 1e-6

#: Memoire's own rate. It leaves the mean where it begins, at 1, for some ten million steps.
RATE = 1e-8


class PriorityScale:
    """Priorities (|error| / c)**exponent, where 2 c**2 is the mean squared error so far.

    The mean moves by ``rate`` for the squared error of each step.
    """

    def __init__(self) -> None:
        self._mean_square = 1.0

    @property
    def mean_square(self) -> float:
        """The mean squared error so far."""
        return self._mean_square

    def priorities(self, errors: FloatArray, exponent: float, rate: float = RATE) -> FloatArray:
        """Return the priorities [N] of steps with ``errors`` [N], and learn from these."""
        scale = np.sqrt(self._mean_square / 2)
        found: FloatArray = (np.abs(errors) / scale) ** exponent
        moved = self._mean_square + rate * float((errors**2 - self._mean_square).sum())
        self._mean_square = max(moved, LEAST)
        return found

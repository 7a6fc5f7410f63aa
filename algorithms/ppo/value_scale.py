"""The scale of values: a network learns them with mean 0 and standard deviation 1.

van Hasselt et al. 2016 (https://arxiv.org/abs/1602.07714), without their correction of the last
layer; Yu et al. 2021 (https://arxiv.org/abs/2103.01955), section 5.1, with the decay of its code.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

#: How much of the means stays with each batch.
DECAY = 0.99999

#: The variance is at least this: returns of one size alone are not blown up.
LEAST_VARIANCE = 1e-2

#: Its name within a checkpoint.
VALUE_SCALE = "value scale"


class ValueScale:
    """Mean and standard deviation of the returns of all batches so far.

    The means begin with 0 and are divided by the weight of what they have seen (Kingma and Ba 2015,
    https://arxiv.org/abs/1412.6980, section 3).
    """

    def __init__(self) -> None:
        #: Of returns, of their squares, and the weight of both.
        self._sums = np.zeros(3)

    def add(self, returns: FloatArray) -> None:
        """Take note of the returns [N] of a batch."""
        if returns.size:
            exact = returns.astype(np.float64)
            seen = np.array([exact.mean(), np.square(exact).mean(), 1.0])
            self._sums = DECAY * self._sums + (1 - DECAY) * seen

    def normalized(self, returns: FloatArray) -> FloatArray:
        """Return what a network should put out for values of this size."""
        mean, deviation = self._moments()
        return ((returns - mean) / deviation).astype(np.float32)

    def restored(self, outputs: FloatArray) -> FloatArray:
        """Return the values that a network means by its outputs."""
        mean, deviation = self._moments()
        return (outputs * deviation + mean).astype(np.float32)

    def state(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the means for a checkpoint."""
        return {VALUE_SCALE: self._sums}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a checkpoint; ValueError for one of a training without a scale."""
        if VALUE_SCALE not in state:
            raise ValueError(
                "normalize_values: the checkpoint is of a training without, whose values have "
                "another scale. Go on without the key, or begin another training"
            )
        self._sums = np.array(state[VALUE_SCALE], np.float64)

    def _moments(self) -> tuple[float, float]:
        mean, square, weight = self._sums.tolist()
        if weight == 0:
            return 0.0, 1.0
        mean, square = mean / weight, square / weight
        return mean, float(np.sqrt(max(square - mean**2, LEAST_VARIANCE)))

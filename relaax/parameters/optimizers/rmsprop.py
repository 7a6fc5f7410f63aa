"""RMSProp with shared statistics."""

from dataclasses import dataclass

import numpy as np

from relaax.algorithm_base import FloatVector
from relaax.parameters.optimizers.optimizer import Slots


@dataclass(frozen=True)
class RMSPropSettings:
    """Constants of RMSProp."""

    #: Weight of the past in the running mean of squared gradients.
    decay: float = 0.99
    #: Added to that mean below the root.
    epsilon: float = 0.1


class RMSProp:
    """RMSProp without momentum, its statistics shared by all workers.

    Mnih et al. 2016 (https://arxiv.org/abs/1602.01783), section 4, "Optimization", equation (1):
    ``g = decay * g + (1 - decay) * gradient**2`` and
    ``parameters -= learning_rate * gradient / sqrt(g + epsilon)``.
    """

    def __init__(self, size: int, settings: RMSPropSettings) -> None:
        self.settings = settings
        #: Running mean of squared gradients, float32 [size]; starts at zero.
        self.mean_square: FloatVector = np.zeros(size, np.float32)
        self._scratch: FloatVector = np.empty(size, np.float32)

    def slots(self) -> Slots:
        """Return the running mean of squared gradients."""
        return {"rmsprop/mean_square": self.mean_square}

    def part(self, begin: int, end: int, size: int) -> "RMSProp":
        """See Optimizer."""
        return RMSProp(end - begin, self.settings)

    def apply(self, parameters: FloatVector, gradient: FloatVector, learning_rate: float) -> None:
        """Take one step down ``gradient`` [size], changing ``parameters`` [size] in place."""
        decay, scratch = self.settings.decay, self._scratch
        np.square(gradient, out=scratch)
        scratch *= 1 - decay
        self.mean_square *= decay
        self.mean_square += scratch
        np.add(self.mean_square, self.settings.epsilon, out=scratch)
        np.sqrt(scratch, out=scratch)
        np.divide(gradient, scratch, out=scratch)
        scratch *= learning_rate
        parameters -= scratch

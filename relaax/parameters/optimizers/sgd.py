"""Stochastic gradient descent with momentum."""

import numpy as np

from relaax.algorithm_base import FloatVector
from relaax.parameters.optimizers.optimizer import Slots


class SGD:
    """Stochastic gradient descent with momentum, its velocity shared by all workers.

    Polyak 1964; Sutskever et al. 2013 (https://proceedings.mlr.press/v28/sutskever13.html), section
    2, with the learning rate outside of the velocity, so that a falling rate works at once:
    ``velocity = momentum * velocity + gradient`` and ``parameters -= learning_rate * velocity``.
    With momentum 0 it is plain gradient descent.
    """

    def __init__(self, size: int, momentum: float) -> None:
        self.momentum = momentum
        #: float32 [size]; starts at zero.
        self.velocity: FloatVector = np.zeros(size, np.float32)
        self._scratch: FloatVector = np.empty(size, np.float32)

    def slots(self) -> Slots:
        """Return the velocity."""
        return {"sgd/velocity": self.velocity}

    def part(self, begin: int, end: int, size: int) -> "SGD":
        """See Optimizer."""
        return SGD(end - begin, self.momentum)

    def apply(self, parameters: FloatVector, gradient: FloatVector, learning_rate: float) -> None:
        """Take one step down ``gradient`` [size], changing ``parameters`` [size] in place."""
        self.velocity *= self.momentum
        self.velocity += gradient
        np.multiply(self.velocity, learning_rate, out=self._scratch)
        parameters -= self._scratch

"""Adam on a flat vector."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector
from relaax.parameters.optimizers.optimizer import Slots


@dataclass(frozen=True)
class AdamSettings:
    """Constants of Adam."""

    #: Weight of the past in the running mean of gradients.
    beta1: float = 0.9
    #: Weight of the past in the running mean of squared gradients.
    beta2: float = 0.999
    #: Added to the root of that mean.
    epsilon: float = 1e-8
    #: Each step shrinks the parameters by this part of them, times the learning rate.
    weight_decay: float = 0.0


class Adam:
    """Adam with decoupled weight decay (AdamW), its statistics shared by all workers.

    Kingma and Ba 2015 (https://arxiv.org/abs/1412.6980), algorithm 1, with step t = 1, 2, ...:
    ``m = beta1 * m + (1 - beta1) * gradient``, ``v = beta2 * v + (1 - beta2) * gradient**2`` and
    ``parameters -= learning_rate * (m / (1 - beta1**t)) / (sqrt(v / (1 - beta2**t)) + epsilon)``.
    (TensorFlow adds its epsilon before the correction by ``1 - beta2**t``.) Before that,
    ``parameters -= learning_rate * weight_decay * parameters``: Loshchilov and Hutter 2019
    (https://arxiv.org/abs/1711.05101), algorithm 2.
    """

    def __init__(self, size: int, settings: AdamSettings) -> None:
        self.settings = settings
        #: Running mean of gradients, float32 [size]; starts at zero.
        self.mean: FloatVector = np.zeros(size, np.float32)
        #: Running mean of squared gradients, float32 [size]; starts at zero.
        self.mean_square: FloatVector = np.zeros(size, np.float32)
        #: Number of steps taken, int64 [1].
        self.steps: npt.NDArray[np.int64] = np.zeros(1, np.int64)
        self._scratch: FloatVector = np.empty(size, np.float32)

    def slots(self) -> Slots:
        """Return both running means, and the number of steps."""
        return {
            "adam/mean": self.mean,
            "adam/mean_square": self.mean_square,
            "adam/steps": self.steps,
        }

    def part(self, begin: int, end: int, size: int) -> "Adam":
        """See Optimizer."""
        return Adam(end - begin, self.settings)

    def apply(self, parameters: FloatVector, gradient: FloatVector, learning_rate: float) -> None:
        """Take one step down ``gradient`` [size], changing ``parameters`` [size] in place."""
        self._remember(gradient)
        settings, scratch, steps = self.settings, self._scratch, int(self.steps[0])
        if settings.weight_decay:
            parameters *= 1 - learning_rate * settings.weight_decay
        # Both corrections and the learning rate are numbers: one factor, and a scaled epsilon.
        correction = sqrt(1 - settings.beta2**steps)
        np.sqrt(self.mean_square, out=scratch)
        scratch += settings.epsilon * correction
        np.divide(self.mean, scratch, out=scratch)
        scratch *= learning_rate * correction / (1 - settings.beta1**steps)
        parameters -= scratch

    def _remember(self, gradient: FloatVector) -> None:
        """Count the step, and let both running means follow ``gradient``."""
        beta1, beta2, scratch = self.settings.beta1, self.settings.beta2, self._scratch
        self.steps += 1
        np.multiply(gradient, 1 - beta1, out=scratch)
        self.mean *= beta1
        self.mean += scratch
        np.square(gradient, out=scratch)
        scratch *= 1 - beta2
        self.mean_square *= beta2
        self.mean_square += scratch

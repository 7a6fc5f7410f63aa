"""Adam on flat variables, inside a TensorFlow graph; the same steps as ``optimizers.adam``."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector
from relaax.learning.optimizers.adam import AdamSettings


class GraphAdam:
    """Adam for one flat variable [size], whose statistics are variables too.

    Kingma and Ba 2015 (https://arxiv.org/abs/1412.6980), algorithm 1.
    """

    def __init__(self, size: int, settings: AdamSettings, learning_rate: float) -> None:
        self._settings = settings
        self._learning_rate = learning_rate
        self._mean = tf.Variable(np.zeros(size, np.float32), trainable=False)
        self._mean_square = tf.Variable(np.zeros(size, np.float32), trainable=False)
        self._steps = tf.Variable(np.float32(0), trainable=False)

    def apply(self, variable: tf.Variable, gradient: tf.Tensor) -> None:
        """Take one step down ``gradient`` [size], changing ``variable`` [size]."""
        settings = self._settings
        steps = self._steps.assign_add(1.0)
        mean = self._mean.assign(settings.beta1 * self._mean + (1 - settings.beta1) * gradient)
        mean_square = self._mean_square.assign(
            settings.beta2 * self._mean_square + (1 - settings.beta2) * tf.square(gradient)
        )
        rate = self._learning_rate / (1 - settings.beta1**steps)
        root = tf.sqrt(mean_square / (1 - settings.beta2**steps)) + settings.epsilon
        shrunk = variable * (1 - self._learning_rate * settings.weight_decay)
        variable.assign(shrunk - rate * mean / root)

    def slots(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return what it remembers, by the names of ``optimizers.adam``."""
        return {
            "adam/mean": self._mean.numpy(),
            "adam/mean_square": self._mean_square.numpy(),
            "adam/steps": self._steps.numpy()[np.newaxis],
        }

    def restore(self, slots: Mapping[str, FloatVector]) -> None:
        """Go on from slots."""
        self._mean.assign(slots["adam/mean"])
        self._mean_square.assign(slots["adam/mean_square"])
        self._steps.assign(slots["adam/steps"][0])

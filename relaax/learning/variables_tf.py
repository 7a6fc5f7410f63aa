"""The variables that an update changes, and Adam for them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector
from relaax.parameters.optimizers.adam import AdamSettings


def scaled_down(gradient: tf.Tensor, longest: float | None) -> tuple[tf.Tensor, tf.Tensor]:
    """Return ``gradient`` [size], at most ``longest`` (None: as it is), and its norm before."""
    norm = tf.norm(gradient)
    if longest is not None:
        gradient *= tf.minimum(1.0, longest / tf.maximum(norm, 1e-12))
    return gradient, norm


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

    @property
    def steps(self) -> tf.Variable:
        """How many steps were taken, a float32."""
        return self._steps

    def slots(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return its statistics, by the names of ``optimizers.adam``."""
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


Array = npt.NDArray[Any]


class Variables:
    """Flat variables by name, and Adam's statistics of the learnt ones.

    learnt: float32 vectors by name. followers: the names of variables that begin as copies of a
    learnt one and follow it, with that one's name. learning_rates: by the names of the learnt.
    """

    def __init__(
        self,
        learnt: Mapping[str, FloatVector],
        followers: Mapping[str, str],
        learning_rates: Mapping[str, float],
    ) -> None:
        self.names = tuple(learnt)
        self._followers = dict(followers)
        self._variables = {name: tf.Variable(vector) for name, vector in learnt.items()} | {
            name: tf.Variable(learnt[leader]) for name, leader in followers.items()
        }
        self._adam = {
            name: GraphAdam(vector.size, AdamSettings(), learning_rates[name])
            for name, vector in learnt.items()
        }

    def __getitem__(self, name: str) -> tf.Variable:
        """Return a variable [size]."""
        return self._variables[name]

    def all(self) -> dict[str, tf.Tensor]:
        """Return the values of all of them by name, inside a graph."""
        return {name: tf.identity(variable) for name, variable in self._variables.items()}

    def descend(self, name: str, gradient: tf.Tensor) -> None:
        """Take a step down ``gradient`` [size], inside a graph."""
        self._adam[name].apply(self._variables[name], gradient)

    def steps(self, name: str) -> tf.Tensor:
        """Return how many steps ``name`` has taken, a float32, inside a graph."""
        return tf.identity(self._adam[name].steps)

    def follow(self, rate: float | tf.Tensor) -> None:
        """Move all followers this part of the way to their leaders, inside a graph."""
        for name, leader in self._followers.items():
            variable = self._variables[name]
            variable.assign_add(rate * (self._variables[leader] - variable))

    def load(self, joined: FloatVector) -> None:
        """Replace all that is learnt by the vectors that ``joined`` [sizes] holds in order."""
        ends = np.cumsum([self._variables[name].shape[0] for name in self.names])
        for name, part in zip(self.names, np.split(joined, ends[:-1]), strict=True):
            self._variables[name].assign(part)

    def copy_to_followers(self) -> None:
        """Let all followers be copies of their leaders."""
        for name, leader in self._followers.items():
            self._variables[name].assign(self._variables[leader])

    def state(self) -> dict[str, Array]:
        """Return all arrays by name."""
        arrays = {name: variable.numpy() for name, variable in self._variables.items()}
        return arrays | {
            f"{of}/{name}": slot
            for of, adam in self._adam.items()
            for name, slot in adam.slots().items()
        }

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``, which may hold more."""
        for name, variable in self._variables.items():
            variable.assign(state[name])
        for of, adam in self._adam.items():
            prefix = f"{of}/"
            adam.restore(
                {n.removeprefix(prefix): s for n, s in state.items() if n.startswith(prefix)}
            )

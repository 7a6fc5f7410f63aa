"""What an update changes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector
from relaax.learning.optimizers import AdamSettings
from relaax.learning.optimizers.adam_tf import GraphAdam

Array = npt.NDArray[Any]


class Variables:
    """Flat variables by name, and what Adam remembers of those that are learnt.

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

    def descend(self, name: str, gradient: tf.Tensor) -> None:
        """Take a step down ``gradient`` [size], inside a graph."""
        self._adam[name].apply(self._variables[name], gradient)

    def follow(self, rate: float) -> None:
        """Move all followers this part of the way to what they follow, inside a graph."""
        for name, leader in self._followers.items():
            variable = self._variables[name]
            variable.assign_add(rate * (self._variables[leader] - variable))

    def load(self, joined: FloatVector) -> None:
        """Replace all that is learnt by the vectors that ``joined`` [sizes] holds in order."""
        ends = np.cumsum([self._variables[name].shape[0] for name in self.names])
        for name, part in zip(self.names, np.split(joined, ends[:-1]), strict=True):
            self._variables[name].assign(part)

    def copy_to_followers(self) -> None:
        """Let all followers be what they follow."""
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

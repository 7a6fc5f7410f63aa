"""What an update changes."""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from relaax.learning.optimizers import AdamSettings
from relaax.learning.optimizers.adam_tf import GraphAdam

Array = npt.NDArray[Any]


class Variables:
    """Flat variables by name, and what Adam remembers of those that it moves.

    initial: arrays by name. learning_rates: of those that are learnt.
    """

    def __init__(self, initial: Mapping[str, Array], learning_rates: Mapping[str, float]) -> None:
        self._variables = {name: tf.Variable(array) for name, array in initial.items()}
        self._adam = {
            name: GraphAdam(initial[name].size, AdamSettings(), rate)
            for name, rate in learning_rates.items()
        }

    def __getitem__(self, name: str) -> tf.Variable:
        """Return a variable [size]."""
        return self._variables[name]

    def descend(self, name: str, gradient: tf.Tensor) -> None:
        """Take a step down ``gradient`` [size], inside a graph."""
        self._adam[name].apply(self._variables[name], gradient)

    def follow(self, name: str, leader: str, rate: float) -> None:
        """Move the variable ``name`` this part of the way to ``leader``, inside a graph."""
        variable = self._variables[name]
        variable.assign_add(rate * (self._variables[leader] - variable))

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

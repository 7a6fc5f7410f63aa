"""The noise that choices are made with, and actions at random at first."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.learning.distributions.base import ActionHead
from relaax.learning.model import Choice, PolicyModel
from relaax.learning.networks.manifest import NetworkParameters
from relaax.observations import Observations

FloatArray = npt.NDArray[np.float32]

#: Returns the global step.
Clock: TypeAlias = Callable[[], int]


class UniformAtFirst:
    """Chooses evenly between -1 and 1 until the global step is ``steps``.

    After that it is ``model`` that chooses. It stands around the model, so that it fits whatever
    the model makes actions of, and leaves evaluations alone, which choose with the model itself.
    """

    def __init__(
        self, model: PolicyModel, steps: int, global_t: Clock, random: np.random.Generator
    ) -> None:
        self._model = model
        self._steps = steps
        self._global_t = global_t
        self._random = random

    def batch_size(self, count: int) -> int:
        """See PolicyModel."""
        return self._model.batch_size(count)

    def choose(
        self,
        parameters: NetworkParameters,
        observations: Observations,
        recurrent_state: FloatArray,
        noise: FloatArray,
    ) -> Choice:
        """See PolicyModel. The likelihoods belong to the model's own choices."""
        choice = self._model.choose(parameters, observations, recurrent_state, noise)
        if self._global_t() >= self._steps:
            return choice
        drawn = self._random.uniform(-1, 1, choice.actions.shape)
        return replace(choice, actions=drawn.astype(np.float32))


IntArray = npt.NDArray[np.int64]


class NoiseSource(Protocol):
    """Makes noise for the environments in an actor's slots, one for each choice."""

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""

    def start(self, slots: IntArray) -> None:
        """Take note that episodes begin in ``slots`` [B]."""

    def draw(self, slots: IntArray) -> FloatArray:
        """Return the noise of the next choices in ``slots`` [B], float32 [B, ...].

        It is what the ``choose`` of an ``ActionHead`` takes: zeros make the best known action.
        """


class NoNoise:
    """Makes zeros, so that each choice is the best known action: the mode of a distribution."""

    def __init__(self, head: ActionHead) -> None:
        self._shape = head.noise(np.random.default_rng(0), 1).shape[1:]

    def grow(self, capacity: int) -> None:
        """See NoiseSource."""

    def start(self, slots: IntArray) -> None:
        """See NoiseSource."""

    def draw(self, slots: IntArray) -> FloatArray:
        """See NoiseSource."""
        return np.zeros((len(slots), *self._shape), np.float32)

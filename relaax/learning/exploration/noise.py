"""The noise that choices are made with."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from relaax.learning.distributions.base import ActionHead

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


class NoiseSource(Protocol):
    """Makes noise for the environments in an actor's slots, one for each choice."""

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""

    def start(self, slots: IntArray) -> None:
        """Take note that episodes begin in ``slots`` [B]."""

    def draw(self, slots: IntArray) -> FloatArray:
        """Return what the next choices in ``slots`` [B] are made with, float32 [B, ...].

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

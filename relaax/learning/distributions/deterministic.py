"""Continuous actions between -1 and 1, one for each state, in numpy."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Deterministic:
    """The action ``tanh(u)`` of outputs u; Lillicrap et al. 2016, section 7.

    Noise makes actors try other actions (``exploration.action_noise``).
    """

    action_shape: tuple[int, ...]

    action_dtype = np.float32

    @cached_property
    def outputs(self) -> int:
        """How many numbers an action has."""
        return prod(self.action_shape)

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Return no noise, float32 [count, A]."""
        return np.zeros((count, self.outputs), np.float32)

    def choose(self, outputs: FloatArray, noise: FloatArray) -> FloatArray:
        """Return the actions [B, ...] that outputs [B, A] and noise [B, A] make."""
        actions: FloatArray = np.clip(np.tanh(outputs) + noise, -1, 1)
        return actions.reshape(-1, *self.action_shape)

    def mode(self, outputs: FloatArray) -> FloatArray:
        """Return the actions [B, ...] of outputs [B, A]."""
        return self.choose(outputs, np.zeros_like(outputs))

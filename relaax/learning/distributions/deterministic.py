"""Continuous actions between bounds, one for each state, in numpy."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Deterministic:
    """The action ``middle + half * tanh(u)`` of outputs u; Lillicrap et al. 2016, section 7.

    low, high: float32 arrays of the action's shape. What makes actors try other actions is noise in
    halves of the range (``exploration.action_noise``).
    """

    low: FloatArray
    high: FloatArray

    action_dtype = np.float32

    @property
    def action_shape(self) -> tuple[int, ...]:
        """The shape of one action."""
        return self.low.shape

    @cached_property
    def outputs(self) -> int:
        """How many numbers an action has."""
        return prod(self.low.shape)

    @cached_property
    def half(self) -> FloatArray:
        """Half of the range of each number, [A]."""
        half: FloatArray = self.high.ravel() / np.float32(2) - self.low.ravel() / np.float32(2)
        return half

    @cached_property
    def middle(self) -> FloatArray:
        """The middle of the range of each number, [A]."""
        return self.low.ravel() + self.half

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Return no noise, float32 [count, A]."""
        return np.zeros((count, self.outputs), np.float32)

    def choose(self, outputs: FloatArray, noise: FloatArray) -> FloatArray:
        """Return the actions [B, ...] that outputs [B, A] and noise [B, A] make."""
        places = np.tanh(outputs) + noise
        actions = self.middle + self.half * np.clip(places, -1, 1)
        within: FloatArray = np.clip(actions.reshape(-1, *self.action_shape), self.low, self.high)
        return within

    def mode(self, outputs: FloatArray) -> FloatArray:
        """Return the actions [B, ...] of outputs [B, A]."""
        return self.choose(outputs, np.zeros_like(outputs))

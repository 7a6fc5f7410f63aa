"""Several choices at once, each one of several actions, in numpy."""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.distributions.categorical import Categorical, Mask, gumbel_noise

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MultiDiscrete:
    """Independent categoricals: choice i is one of the actions 0 to ``nvec[i] - 1``.

    The network puts out the logits of the first choice, then those of the second, and so on.
    ValueError if there is no choice, or one without an action.
    """

    nvec: tuple[int, ...]

    #: What TensorFlow's graphs take; numpy's own int64 is chosen.
    action_dtype = np.int32

    def __post_init__(self) -> None:
        if min(self.nvec, default=0) < 1:
            raise ValueError(f"nvec must be one or more numbers of actions, is {list(self.nvec)}")

    @cached_property
    def outputs(self) -> int:
        """The number of all logits."""
        return sum(self.nvec)

    @property
    def action_shape(self) -> tuple[int, ...]:
        """One number for each choice."""
        return (len(self.nvec),)

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Draw independent standard Gumbel values, float32 [count, N]."""
        return gumbel_noise(random, (count, self.outputs))

    def choose(self, outputs: FloatArray, noise: FloatArray) -> IntArray:
        """Return the actions int64 [B, choices] that logits [B, N] and noise make."""
        return self.mode(outputs + noise)

    def mode(self, outputs: FloatArray) -> IntArray:
        """Return the most probable actions int64 [B, choices], from logits [B, N]."""
        return np.stack([part.argmax(axis=-1) for part in self._parts(outputs)], axis=-1)

    def log_likelihood(self, outputs: FloatArray, actions: IntArray) -> FloatArray:
        """Return log pi float32 [B] of actions [B, choices], from logits [B, N]."""
        columns = zip(self._choices, self._parts(outputs), actions.T, strict=True)
        return _sum([choice.log_likelihood(part, column) for choice, part, column in columns])

    def masked(self, outputs: FloatArray, mask: Mask) -> FloatArray:
        """Return logits [B, N] without the actions whose ``mask`` [B, N] is 0.

        A choice with nothing allowed becomes a uniform one, which teaches nothing.
        """
        parts = zip(self._choices, self._parts(outputs), self._parts(mask), strict=True)
        return np.concatenate([choice.masked(part, allowed) for choice, part, allowed in parts], -1)

    @cached_property
    def _choices(self) -> tuple[Categorical, ...]:
        return tuple(Categorical(n) for n in self.nvec)

    @cached_property
    def _bounds(self) -> tuple[tuple[int, int], ...]:
        return tuple(pairwise(accumulate(self.nvec, initial=0)))

    def _parts(self, outputs: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Return the columns of each choice."""
        return [outputs[..., begin:end] for begin, end in self._bounds]


def _sum(terms: list[FloatArray]) -> FloatArray:
    """Return the sum of the choices: they are independent."""
    total: FloatArray = np.sum(terms, axis=0)
    return total

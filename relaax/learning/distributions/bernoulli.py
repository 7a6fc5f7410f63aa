"""Bits, in numpy."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from relaax.learning.distributions.categorical import FORBIDDEN, Mask, gumbel_noise

FloatArray = npt.NDArray[np.float32]
Bits = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Bernoulli:
    """Independent bits of ``action_shape``; the network puts out the logit of each being 1."""

    action_shape: tuple[int, ...]

    #: What rollouts keep; numpy's own int64 is chosen.
    action_dtype = np.int8

    @cached_property
    def outputs(self) -> int:
        """The number of bits."""
        return prod(self.action_shape)

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Draw independent standard logistic values, float32 [count, N]."""
        shape = (count, self.outputs)  # the difference of two Gumbel values is a logistic one
        return gumbel_noise(random, shape) - gumbel_noise(random, shape)

    def choose(self, outputs: FloatArray, noise: FloatArray) -> Bits:
        """Return the bits int64 [B, ...] that logits [B, N] and noise make."""
        return self.mode(outputs + noise)

    def mode(self, outputs: FloatArray) -> Bits:
        """Return the most probable bits int64 [B, ...], from logits [B, N]; 0 where both are."""
        return (outputs > 0).astype(np.int64).reshape(*outputs.shape[:-1], *self.action_shape)

    def log_likelihood(self, outputs: FloatArray, actions: Bits) -> FloatArray:
        """Return log pi float32 [B] of bits [B, ...], from logits [B, N]."""
        bits = actions.reshape(outputs.shape)
        total: FloatArray = (bits * outputs - _softplus(outputs)).sum(axis=-1)
        return total

    def masked(self, outputs: FloatArray, mask: Mask) -> FloatArray:
        """Return logits [B, N] where a bit is always 0 whose ``mask`` [B, N] is 0.

        With nothing allowed, the one action that is left is all bits 0.
        """
        return np.where(np.asarray(mask, np.bool_), outputs, FORBIDDEN)


def _softplus(x: FloatArray) -> FloatArray:
    """Return ``log(1 + exp(x))``: the negative logarithm of the probability of 0 at logit x."""
    softplus: FloatArray = np.logaddexp(x, np.float32(0))
    return softplus

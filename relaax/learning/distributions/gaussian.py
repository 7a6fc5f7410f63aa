"""Continuous actions without bounds, in numpy."""

from dataclasses import dataclass
from functools import cached_property
from math import e, log, pi, prod
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

#: What makes a standard deviation of what the network puts out.
SigmaFunction: TypeAlias = Literal["softplus", "exp", "bounded_exp"]

#: What ``bounded_exp`` cuts a raw value to: Haarnoja et al. 2018 do so in their program
#: (https://github.com/haarnoja/sac), and so do all others.
RAW_BOUNDS = (-20.0, 2.0)

#: The entropy of a standard normal variable in nats.
STANDARD_ENTROPY = 0.5 * log(2 * pi * e)


@dataclass(frozen=True)
class DiagonalGaussian:
    """Arrays of ``action_shape``, each number with a normal distribution of its own.

    The network puts out a mean mu for each number, then a raw value for each, which becomes the
    standard deviation:

    - ``softplus``: ``sigma = log(1 + exp(raw)) + least_sigma``, for a sigma that depends on the
      state; seed 003, "Distributed A3C Continuous" (whose formulas take sigma for the variance).
      ``least_sigma`` keeps the likelihood finite where a policy becomes sure.
    - ``exp``: ``sigma = exp(raw)``. The raw value is a logarithm, as is usual where it is a
      parameter of its own, free of the state.
    - ``bounded_exp``: the same with a raw value that is cut to -20 to 2, for soft actor-critic.
    """

    action_shape: tuple[int, ...]
    sigma: SigmaFunction = "softplus"
    #: Added to ``softplus``; not to ``exp``.
    least_sigma: float = 1e-3

    action_dtype = np.float32

    @cached_property
    def actions(self) -> int:
        """How many numbers an action has."""
        return prod(self.action_shape)

    @property
    def outputs(self) -> int:
        """A mean and a raw value for each number."""
        return 2 * self.actions

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Draw independent standard normal values, float32 [count, A]."""
        return random.standard_normal((count, self.actions), np.float32)

    def choose(self, outputs: FloatArray, noise: FloatArray) -> FloatArray:
        """Return the actions float32 [B, ...] that outputs [B, 2 A] and noise make."""
        mean, sigma = self.mean_and_sigma(outputs)
        return self._shaped(mean + sigma * noise)

    def mode(self, outputs: FloatArray) -> FloatArray:
        """Return the means float32 [B, ...], from outputs [B, 2 A]."""
        return self._shaped(outputs[..., : self.actions])

    def log_likelihood(self, outputs: FloatArray, actions: FloatArray) -> FloatArray:
        """Return the logarithm of the density, float32 [B], of actions [B, ...]."""
        mean, sigma = self.mean_and_sigma(outputs)
        deviations = (actions.reshape(mean.shape) - mean) / sigma
        terms = np.square(deviations) / 2 + np.log(sigma)
        total: FloatArray = -terms.sum(axis=-1) - self.actions * log(2 * pi) / 2
        return total

    def mean_and_sigma(self, outputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations [..., A], from outputs [..., 2 A]."""
        mean, raw = outputs[..., : self.actions], outputs[..., self.actions :]
        if self.sigma == "exp":
            return mean, np.exp(raw)
        if self.sigma == "bounded_exp":
            return mean, np.exp(np.clip(raw, *RAW_BOUNDS))
        return mean, np.logaddexp(raw, np.float32(0)) + np.float32(self.least_sigma)

    def _shaped(self, columns: FloatArray) -> FloatArray:
        return columns.reshape(*columns.shape[:-1], *self.action_shape)

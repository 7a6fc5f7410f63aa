"""Continuous actions between -1 and 1, in numpy."""

from math import log, prod

import numpy as np
import numpy.typing as npt

from relaax.learning.distributions.gaussian import DiagonalGaussian, SigmaFunction

FloatArray = npt.NDArray[np.float32]

#: The likelihood of an action nearer to -1 or 1 than this is the one of an action just there.
#: float32 tells actions apart up to here.
BOUND_MARGIN = 1e-6

#: Points at which the mean of a function of a standard normal variable is taken, and their weights:
#: the trapezoidal rule. The entropy is right to 0.001 nats for each number up to sigma = 3. (There,
#: Gauss-Hermite quadrature with as many points is 20 times less exact.)
NORMAL_POINTS: FloatArray = np.linspace(-5, 5, 25, dtype=np.float32)
_DENSITIES = np.exp(-(NORMAL_POINTS**2) / 2)
NORMAL_WEIGHTS: FloatArray = _DENSITIES / _DENSITIES.sum()


class SquashedGaussian:
    """A diagonal Gaussian whose draws u become ``tanh(u)``, arrays of ``action_shape``.

    Haarnoja et al. 2018 (https://arxiv.org/abs/1801.01290), appendix C. The network puts out what
    ``DiagonalGaussian`` takes.

    - **Mode**: ``tanh`` of the mean, which is the median. (The density has its peaks elsewhere when
      sigma is large, at the bounds at last.)
    - **Likelihood**: of actions between -1 and 1 and just there, always finite.
    - **Entropy**: has no closed form. It is that of the Gaussian plus the mean of
      ``log(da / du)``, which is summed up at 25 fixed points: without randomness, and with a
      gradient for mean and sigma. Unlike the entropy of the Gaussian alone it has a highest value,
      that of the uniform distribution from -1 to 1, so that an entropy bonus does not drive
      sigma to infinity and all actions to the bounds.
    - **KL**: that of the two Gaussians, since both are squashed alike.
    """

    action_dtype = np.float32

    def __init__(
        self,
        action_shape: tuple[int, ...],
        sigma: SigmaFunction = "softplus",
        least_sigma: float = 1e-3,
    ) -> None:
        self.gaussian = DiagonalGaussian((prod(action_shape),), sigma, least_sigma)
        self.action_shape = action_shape
        self.outputs = self.gaussian.outputs

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Draw independent standard normal values, float32 [count, A]."""
        return self.gaussian.noise(random, count)

    def choose(self, outputs: FloatArray, noise: FloatArray) -> FloatArray:
        """Return the actions float32 [B, ...] that outputs [B, 2 A] and noise make."""
        return self._squashed(self.gaussian.choose(outputs, noise))

    def mode(self, outputs: FloatArray) -> FloatArray:
        """Return the medians float32 [B, ...], from outputs [B, 2 A]."""
        return self._squashed(self.gaussian.mode(outputs))

    def log_likelihood(self, outputs: FloatArray, actions: FloatArray) -> FloatArray:
        """Return the logarithm of the density, float32 [B], of actions [B, ...]."""
        draws = self._draws(actions)
        slopes = log_slope(draws).sum(axis=-1)
        likelihood: FloatArray = self.gaussian.log_likelihood(outputs, draws) - slopes
        return likelihood

    def _squashed(self, draws: FloatArray) -> FloatArray:
        """Return draws [B, A] as actions [B, ...]."""
        actions: FloatArray = np.tanh(draws).reshape(-1, *self.action_shape)
        return actions

    def _draws(self, actions: FloatArray) -> FloatArray:
        """Return the draws [B, A] that made actions [B, ...]."""
        limit = np.float32(1 - BOUND_MARGIN)
        columns = actions.reshape(len(actions), self.gaussian.actions)
        draws: FloatArray = np.arctanh(np.clip(columns, -limit, limit))
        return draws


def log_slope(draws: FloatArray) -> FloatArray:
    """Return ``log(d tanh(u) / du) = log(1 - tanh(u)**2)``, finite for large draws u, too."""
    slope: FloatArray = 2 * (log(2) - draws - np.logaddexp(-2 * draws, np.float32(0)))
    return slope

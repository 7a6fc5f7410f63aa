"""Noise on continuous actions, for policies that are certain (``distributions.deterministic``).

Noise is in a policy's units: 1 leads from the middle of the range to a bound. Rows are [A].
"""

import numpy as np
import numpy.typing as npt

from relaax.learning.arrays import zero_padded
from relaax.learning.exploration.ladder import ONE_RUNG, Ladder

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


class NormalNoise:
    """Independent normal noise of sizes that ``ladder`` has for environments."""

    def __init__(
        self, actions: int, sigma: float, random: np.random.Generator, ladder: Ladder = ONE_RUNG
    ) -> None:
        self._actions = actions
        self._sigma = sigma
        self._random = random
        self._ladder = ladder

    def grow(self, capacity: int) -> None:
        """See NoiseSource."""

    def start(self, slots: IntArray) -> None:
        """See NoiseSource."""

    def draw(self, slots: IntArray) -> FloatArray:
        """See NoiseSource."""
        drawn = self._random.standard_normal((len(slots), self._actions), np.float32)
        sigmas = self._sigma * self._ladder.sigma_parts(slots)
        return drawn * sigmas[:, np.newaxis]


class OrnsteinUhlenbeckNoise:
    """Noise that is correlated in time, and begins anew at 0 in each episode.

    Lillicrap et al. 2016 (https://arxiv.org/abs/1509.02971), section 7:
    x += -theta x dt + sigma sqrt(dt) N(0, 1), with theta 0.15. In the long run its variance is
    sigma**2 / (2 theta - theta**2 dt).
    """

    def __init__(
        self,
        actions: int,
        sigma: float,
        random: np.random.Generator,
        ladder: Ladder = ONE_RUNG,
        theta: float = 0.15,
        dt: float = 1.0,
    ) -> None:
        self._sigma = sigma
        self._random = random
        self._ladder = ladder
        self._theta = theta
        self._dt = dt
        self._state: FloatArray = np.zeros((0, actions), np.float32)

    def grow(self, capacity: int) -> None:
        """See NoiseSource."""
        self._state = zero_padded(self._state, capacity, axis=0)

    def start(self, slots: IntArray) -> None:
        """See NoiseSource."""
        self._state[slots] = 0

    def draw(self, slots: IntArray) -> FloatArray:
        """See NoiseSource."""
        before = self._state[slots]
        drawn = self._random.standard_normal(before.shape, np.float32)
        sigmas = self._sigma * self._dt**0.5 * self._ladder.sigma_parts(slots)
        after: FloatArray = before - self._theta * self._dt * before + sigmas[:, np.newaxis] * drawn
        self._state[slots] = after
        return after

"""What one row of a rollout is made of."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.distributions.base import Distribution
from relaax.learning.networks.description import Network

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Columns:
    """Shapes and types of what an algorithm observes, does and remembers."""

    observation_shape: tuple[int, ...]
    #: The usual one, to prepare for: bytes for images, else float32.
    observation_dtype: npt.DTypeLike
    #: Of one action; () for a number.
    action_shape: tuple[int, ...]
    action_dtype: npt.DTypeLike
    #: Cells of the recurrent layer; 0 without one.
    recurrent_size: int = 0

    @classmethod
    def of(
        cls, network: Network, distribution: Distribution, observation_dtype: npt.DTypeLike
    ) -> "Columns":
        """Return the columns of what ``network`` observes and ``distribution`` draws."""
        return cls(
            observation_shape=network.observation_shape,
            observation_dtype=observation_dtype,
            action_shape=distribution.action_shape,
            action_dtype=distribution.action_dtype,
            recurrent_size=network.lstm_size,
        )

    def observations(self, *counts: int) -> npt.NDArray[Any]:
        """Return observations of zeros [*counts, ...]."""
        return np.zeros((*counts, *self.observation_shape), self.observation_dtype)

    def actions(self, *counts: int) -> npt.NDArray[Any]:
        """Return actions of zeros [*counts, ...]."""
        return np.zeros((*counts, *self.action_shape), self.action_dtype)

    def recurrent_state(self, count: int) -> FloatArray:
        """Return the state (cell, output) at the start of episodes: zeros [2, count, H]."""
        return np.zeros((2, count, self.recurrent_size), np.float32)

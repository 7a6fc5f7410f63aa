"""What a distribution of actions is asked.

The outputs of a network's policy head are the distribution's parameters. A choice is a function of
these and of noise, so that a network that chooses is a pure function, too.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]

#: TensorFlow has no types.
Tensor = Any


class Distribution(Protocol):
    """A distribution in numpy: where actions are chosen."""

    @property
    def outputs(self) -> int:
        """How many outputs of the network it takes for one action."""

    @property
    def action_shape(self) -> tuple[int, ...]:
        """Return the shape of one action; () for a number."""

    @property
    def action_dtype(self) -> npt.DTypeLike:
        """Return the type that rollouts keep actions in."""

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Draw what makes ``count`` choices: float32 [count, ...]."""

    def choose(self, outputs: FloatArray, noise: FloatArray) -> Array:
        """Return the actions [B, ...] that outputs [B, N] and noise make.

        With noise of zeros it is the most probable action.
        """

    def log_likelihood(self, outputs: FloatArray, actions: Array) -> FloatArray:
        """Return ``log pi(a | s)`` float32 [B] of actions [B, ...], from outputs [B, N]."""


class GraphDistribution(Protocol):
    """The same distribution inside a TensorFlow graph: where something is learnt."""

    def choose(self, outputs: Tensor, noise: Tensor) -> Tensor:
        """Choose as in numpy."""

    def log_likelihood(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """Return ``log pi(a | s)`` float32 [...] of actions, from outputs [..., N]."""

    def entropy(self, outputs: Tensor) -> Tensor:
        """Return the entropy in nats, float32 [...], from outputs [..., N]."""

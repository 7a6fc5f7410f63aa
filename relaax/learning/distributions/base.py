"""The roles of distributions: they make actions of a network's outputs, and know likelihoods.

The outputs of a network's policy head are a distribution's parameters, an action that is certain,
or the values of all actions. A choice is a function of these and of noise, so that a network that
chooses is a pure function, too.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]

#: TensorFlow has no types.
Tensor = Any


class ActionHead(Protocol):
    """Makes actions of outputs, in numpy: where actions are chosen."""

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
        """Draw the noise of ``count`` choices: float32 [count, ...]."""

    def choose(self, outputs: FloatArray, noise: FloatArray) -> Array:
        """Return the actions [B, ...] that outputs [B, N] and noise make.

        Noise of zeros makes the mode.
        """

    def mode(self, outputs: FloatArray) -> Array:
        """Return the most probable actions [B, ...], from outputs [B, N]."""


class Distribution(ActionHead, Protocol):
    """A distribution in numpy: actions have likelihoods."""

    def log_likelihood(self, outputs: FloatArray, actions: Array) -> FloatArray:
        """Return ``log pi(a | s)`` float32 [B] of actions [B, ...], from outputs [B, N]."""


class GraphActionHead(Protocol):
    """Makes actions of outputs inside a TensorFlow graph."""

    def choose(self, outputs: Tensor, noise: Tensor) -> Tensor:
        """Choose as in numpy."""

    def mode(self, outputs: Tensor) -> Tensor:
        """Return the most probable actions, as in numpy."""


class GraphDistribution(GraphActionHead, Protocol):
    """The same distribution inside a graph: where something is learnt."""

    def log_likelihood(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """Return ``log pi(a | s)`` float32 [...] of actions, from outputs [..., N]."""

    def entropy(self, outputs: Tensor) -> Tensor:
        """Return the entropy in nats, float32 [...], from outputs [..., N]."""

    def kl(self, outputs_p: Tensor, outputs_q: Tensor) -> Tensor:
        """Return ``KL(p || q)`` in nats, float32 [...], from outputs [..., N] of both."""


class Maskable(Protocol):
    """A distribution of discrete actions, some of which may be forbidden; in numpy or a graph."""

    def masked(self, outputs: Any, mask: Any) -> Any:
        """Return outputs [..., N], or more, that the masked actions are taken out of.

        mask: bool or uint8 [..., N], 0 where an action is forbidden. Such an action is never
        chosen, and no gradient reaches its output. All else is asked with what is returned: so
        likelihood and entropy are those of the masked distribution.
        """

"""What a learner asks of an update."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector


@dataclass(frozen=True)
class TransitionBatch:
    """B transitions over one step or several, as numpy arrays or tensors."""

    #: [B, ...], or such arrays by name.
    observations: Any
    #: [B, ...]
    actions: Any
    #: float32 [B]: discounted sums over the steps of each transition.
    rewards: Any
    #: float32 [B]: of the value of what follows; 0 behind the end of an episode.
    discounts: Any
    #: Like ``observations``.
    next_observations: Any
    #: float32 [B]: how much each counts.
    weights: Any
    #: float32: what an update draws its actions with.
    noise: Any
    #: [B, ...] by name: what was recorded of the choices of these actions.
    extras: Mapping[str, Any] = field(default_factory=dict)


Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]


class Update(Protocol):
    """Changes what an algorithm learns by one batch."""

    @property
    def policy(self) -> FloatVector:
        """What actors act with, float32 [size]."""

    def __call__(
        self, batch: TransitionBatch, number: int
    ) -> tuple[FloatArray, Mapping[str, float]]:
        """Make the update of this number, from 1; return errors float32 [B] and terms."""

    def gradient(
        self, batch: TransitionBatch
    ) -> tuple[FloatVector, FloatArray, Mapping[str, float]]:
        """Return the gradients of all that is learnt, joined [sizes], errors [B] and terms."""

    def load(self, joined: FloatVector, number: int) -> None:
        """Take all that is learnt [sizes] after the update of this number; targets follow."""

    def begin(self, joined: FloatVector) -> None:
        """Take all that is learnt [sizes] before the first update; targets are copies."""

    def state(self) -> dict[str, Array]:
        """Return all variables by name."""

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``, which may hold more."""

"""A batch of transitions."""

from dataclasses import dataclass
from typing import Any


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

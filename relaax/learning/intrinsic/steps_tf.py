"""Steps as intrinsic rewards see them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.learning.networks.layers_tf import ObservationTensors
from relaax.learning.rollouts import RolloutBatch

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SeenSteps:
    """N steps, as numpy arrays or inside a graph; observations are normalised."""

    #: [N, ...], by name if they have names.
    observations: ObservationTensors
    #: The same of the states that followed.
    following: ObservationTensors
    #: [N, ...], as they were chosen.
    actions: Any
    #: float32 [N, A]: the same as inputs of a network.
    action_inputs: Any
    #: float32 [N]: what their values should be; zeros where there is no value.
    returns: Any
    #: float32 [N]: 1 for a step, 0 for a row that fills the batch up.
    weights: Any


#: The parameters of each network, float32 [size] by its name.
Vectors = Mapping[str, tf.Tensor]


class IntrinsicReward(Protocol):
    """Rewards and a loss, as pure functions inside a graph."""

    def counts(self, rollouts: RolloutBatch) -> BoolArray:
        """Return which rows [T, K] are rewarded and learnt from."""

    def rewards(self, vectors: Vectors, steps: SeenSteps) -> tf.Tensor:
        """Return the rewards of steps, float32 [N]."""

    def losses(self, vectors: Vectors, steps: SeenSteps) -> dict[str, tf.Tensor]:
        """Return the terms of the loss by name, with their weights in it, float32 [N] each."""

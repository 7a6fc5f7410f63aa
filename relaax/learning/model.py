"""The roles of a model: pure functions of parameters and a batch, for acting and learning."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import Version
from relaax.algorithm_base.inference import ServerTimes
from relaax.learning.networks.manifest import NetworkParameters
from relaax.observations import Observations

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Choice:
    """Actions for a batch of observations."""

    #: [B, ...]
    actions: Array
    #: [B, ...] by name: numbers of the choice to be recorded, for instance its log-probability.
    extras: Mapping[str, Array]
    #: float32 [2, B, H], for the next step; H is 0 without a recurrent layer.
    recurrent_state: FloatArray
    #: That of the parameters, where another process has chosen with its own.
    version: Version | None = None
    #: How long that process has had the question, likewise.
    served: ServerTimes | None = None


class PolicyModel(Protocol):
    """Chooses."""

    def batch_size(self, count: int) -> int:
        """Return how many rows a batch of ``count`` observations is padded to."""

    def choose(
        self,
        parameters: NetworkParameters,
        observations: Observations,
        recurrent_state: FloatArray,
        noise: FloatArray,
    ) -> Choice:
        """Choose actions for ``observations`` [B, ...], with the distribution's noise [B, ...].

        Observations may be arrays by name, and padded already, up to ``batch_size(B)`` rows.
        """


@dataclass(frozen=True)
class BatchGradient:
    """The gradient of a batch of rollouts."""

    #: float32 [size], in the order of the manifest: the mean of the rollouts' gradients.
    vector: FloatArray
    #: Parts of the loss by name, each the mean over all steps.
    terms: Mapping[str, float]


class Objective(Protocol):
    """A loss inside a graph, which an algorithm minimises."""

    def loss(self, outputs: Mapping[str, Any], batch: Any) -> tuple[Any, Mapping[str, Any]]:
        """Return the loss, summed over all steps that are valid, and parts of it by name.

        Both are tensors. ``outputs``: of each head of the network for the observations,
        float32 [T + 1, K, units]. ``batch``: ``gradients_tf.GraphRollouts`` of T rows.
        """

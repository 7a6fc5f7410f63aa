"""Choosing actions with a network of dense layers, in numpy.

Such networks are small. Calling a TensorFlow graph takes several times longer than they do:
``benchmarks/inference.py`` compares the two.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.distributions.base import Distribution
from relaax.learning.model import Choice
from relaax.learning.networks.description import POLICY, Network
from relaax.learning.networks.parameters import Parameters

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]


class NumpyPolicy:
    """A network without convolutions and recurrent layers, as a pure function that chooses."""

    def __init__(self, network: Network, distribution: Distribution) -> None:
        self._hidden_layers = [f"dense{index}" for index in range(len(network.dense_units))]
        self._distribution = distribution

    def choose(
        self,
        parameters: Parameters,
        observations: Array,
        recurrent_state: FloatArray,
        noise: FloatArray,
    ) -> Choice:
        """Choose actions for ``observations`` [B, F]; bytes are scaled to [0, 1]."""
        hidden = observations
        if hidden.dtype == np.uint8:
            hidden = hidden / np.float32(255)
        for layer in self._hidden_layers:
            hidden = _dense(parameters.arrays, layer, hidden)
            np.maximum(hidden, 0, out=hidden)
        outputs = _dense(parameters.arrays, POLICY, hidden)
        return Choice(*self._distribution.choose(outputs, noise), recurrent_state)


def _dense(parameters: Mapping[str, FloatArray], layer: str, inputs: Array) -> FloatArray:
    outputs: FloatArray = inputs @ parameters[f"{layer}/kernel"]
    outputs += parameters[f"{layer}/bias"]
    return outputs

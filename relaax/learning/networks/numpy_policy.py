"""Choosing actions with a network of dense layers, in numpy.

Such networks are small. Calling a TensorFlow graph takes several times longer than they do:
``benchmarks/inference.py`` compares the two.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.distributions.base import Distribution
from relaax.learning.model import Choice
from relaax.learning.networks.description import POLICY, Network
from relaax.learning.networks.parameters import Parameters

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]


_NO_LIKELIHOODS: FloatArray = np.zeros(0, np.float32)


class NumpyPolicy:
    """A network without convolutions and recurrent layers, as a pure function that chooses.

    Likelihoods are computed if choices are recorded, to be learnt from.
    """

    def __init__(
        self, network: Network, distribution: Distribution, is_recorded: bool = True
    ) -> None:
        self._is_recorded = is_recorded
        hidden_layers = [f"dense{index}" for index in range(len(network.dense_units))]
        self._hidden = [(f"{layer}/kernel", f"{layer}/bias") for layer in hidden_layers]
        self._head = (f"{POLICY}/kernel", f"{POLICY}/bias")
        self._distribution = distribution

    def batch_size(self, count: int) -> int:
        """Return ``count``: batches are not padded."""
        return count

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
        arrays = parameters.arrays
        for kernel, bias in self._hidden:
            hidden = hidden @ arrays[kernel]
            hidden += arrays[bias]
            np.maximum(hidden, 0, out=hidden)
        kernel, bias = self._head
        outputs: FloatArray = hidden @ arrays[kernel]
        outputs += arrays[bias]
        actions = self._distribution.choose(outputs, noise)
        if not self._is_recorded:
            return Choice(actions, _NO_LIKELIHOODS, recurrent_state)
        likelihoods = self._distribution.log_likelihood(outputs, actions)
        return Choice(actions, likelihoods, recurrent_state)

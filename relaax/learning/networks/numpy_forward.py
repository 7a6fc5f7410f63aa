"""The forward pass of a network of dense layers, in numpy.

Such networks are small. Calling a TensorFlow graph takes several times longer than they do:
``benchmarks/inference.py`` compares the two.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..network import Network

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]


def forward(
    network: Network, parameters: Mapping[str, FloatArray], observations: Array
) -> tuple[FloatArray, FloatArray]:
    """Return logits [B, A] and values [B] of observations [B, F]; bytes are scaled to [0, 1]."""
    hidden = observations
    if hidden.dtype == np.uint8:
        hidden = hidden / np.float32(255)
    for index in range(len(network.dense_units)):
        hidden = _dense(parameters, f"dense{index}", hidden)
        np.maximum(hidden, 0, out=hidden)
    return _dense(parameters, "policy", hidden), _dense(parameters, "value", hidden)[:, 0]


def choose(logits: FloatArray, noise: FloatArray) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return the actions [B] that logits [B, A] and noise [B, A] make, and their log pi [B]."""
    actions = np.argmax(logits + noise, axis=1)
    chosen = logits[np.arange(len(actions)), actions]
    highest = np.maximum.reduce(logits, axis=1)
    total = np.add.reduce(np.exp(logits - highest[:, np.newaxis]), axis=1)
    return actions, chosen - highest - np.log(total)


def _dense(parameters: Mapping[str, FloatArray], layer: str, inputs: Array) -> FloatArray:
    outputs: FloatArray = inputs @ parameters[f"{layer}/kernel"]
    outputs += parameters[f"{layer}/bias"]
    return outputs

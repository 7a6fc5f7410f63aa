"""Networks, as pure functions of parameters and a batch.

``layers``          the kinds of layers
``description``     a network: encoders of observations, a trunk, and heads
``reading``         networks as configurations describe them
``encoders``        the layers of observations that no configuration describes
``manifest``        names, shapes and offsets of the tensors in a flat vector
``initialization``  initial parameters
``numpy_policy``    choosing without convolutions and recurrent layers, in numpy
``policy_tf``       choosing with any network, in TensorFlow
``layers_tf``       layers inside a graph, for one step or unrolled over rollouts
``parameters_tf``   flat vectors, taken apart outside of graphs or inside
``compiled_tf``     calls graphs without TensorFlow's signature matching
"""

from relaax.learning.networks.description import POLICY, Encoder, Head, Network
from relaax.learning.networks.encoders import default_network
from relaax.learning.networks.initialization import initial_parameters
from relaax.learning.networks.layers import (
    LSTM,
    Convolution,
    Dense,
    Layer,
    LayerNorm,
    Reshape,
    SharedDense,
    TransposedConvolution,
)
from relaax.learning.networks.manifest import NetworkParameters, ParameterManifest, TensorSpec
from relaax.learning.networks.reading import read_network

__all__ = [
    "LSTM",
    "POLICY",
    "Convolution",
    "Dense",
    "Encoder",
    "Head",
    "Layer",
    "LayerNorm",
    "Network",
    "NetworkParameters",
    "ParameterManifest",
    "Reshape",
    "SharedDense",
    "TensorSpec",
    "TransposedConvolution",
    "default_network",
    "initial_parameters",
    "read_network"
]  # fmt: skip

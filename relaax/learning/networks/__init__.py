"""Networks, as pure functions of parameters and a batch.

``description``     layers and heads, and the shapes of their parameters
``manifest``        names, shapes and offsets of the tensors in a flat vector
``initialization``  initial parameters
``parameters``      the parameters at one version, as numpy and as TensorFlow want them
``numpy_policy``    choosing with dense layers, in numpy
``policy_tf``       choosing with any network, in TensorFlow
``layers_tf``       layers inside a graph, for one step or unrolled over rollouts
``parameters_tf``   flat vectors, taken apart outside of graphs or inside
``compiled_tf``     calls graphs without TensorFlow's signature matching
"""

from relaax.learning.networks.description import POLICY, Convolution, Head, Network
from relaax.learning.networks.initialization import initial_parameters
from relaax.learning.networks.manifest import ParameterManifest, TensorSpec
from relaax.learning.networks.parameters import Parameters

__all__ = [
    "POLICY",
    "Convolution",
    "Head",
    "Network",
    "ParameterManifest",
    "Parameters",
    "TensorSpec",
    "initial_parameters",
]

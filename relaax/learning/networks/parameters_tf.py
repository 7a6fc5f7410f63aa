"""Flat parameters as TensorFlow's graphs want them."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from relaax.algorithm_base import FloatVector
from relaax.learning.networks import layers_tf
from relaax.learning.networks.compiled_tf import tensor_of
from relaax.learning.networks.description import Network
from relaax.learning.networks.layers_tf import ObservationTensors, Tensors
from relaax.learning.networks.manifest import NetworkParameters, ParameterManifest


def outputs_of(
    network: Network, vector: tf.Tensor, observations: ObservationTensors
) -> dict[str, tf.Tensor]:
    """Return each head's outputs, [B, outputs] by name, for observations [B, ...].

    vector: float32 [size], in the order of the network's manifest. The network has no recurrent
    layer.
    """
    parameters = _by_name(network.manifest, vector)
    encoded = layers_tf.encoded(network, parameters, observations)
    hidden = layers_tf.features(network, parameters, encoded)
    return {
        head.name: layers_tf.head_outputs(network, head, parameters, hidden, encoded)
        for head in network.joining
    }


def unrolled(
    network: Network, vector: tf.Tensor, rollouts: Any, heads: Sequence[str] | None = None
) -> dict[str, tf.Tensor]:
    """Return the outputs of ``heads``, [T + 1, K, outputs] by name, for K rollouts of T rows.

    None: of all heads.

    vector: float32 [size], in the order of the network's manifest. rollouts: a ``RolloutBatch``, or
    the same as tensors. A recurrent layer begins with their ``recurrent_state``, and no gradient
    flows into their burn-in.
    """
    rows = rollouts.observations, rollouts.starts, rollouts.recurrent_state, rollouts.valid
    chosen = None if heads is None else [network.head(name) for name in heads]
    return layers_tf.unroll(network, _by_name(network.manifest, vector), *rows, heads=chosen)


class ParameterTensors:
    """Takes a network's flat vector apart, outside of graphs or inside.

    Under XLA splitting the vector in the graph is free, and one argument is passed faster than
    many; elsewhere it would cost a millisecond a call (2.7 MB). ``on_gpu``: TensorFlow computes
    there.
    """

    def __init__(self, network: Network, on_gpu: bool = False) -> None:
        # What shares numpy's memory stays in the host's: a GPU would fetch it at every call.
        self._to_tensor = tf.convert_to_tensor if on_gpu else tensor_of
        self._manifest = network.manifest
        self._splits_in_graph = not network.has_convolutions

    def unpack(self, vector: FloatVector) -> NetworkParameters:
        """Return the parameters in a flat vector [size]; do it once for each new version.

        The vector must not be changed after that.
        """
        views = self._manifest.unpack(vector)
        parts = [vector] if self._splits_in_graph else list(views.values())
        return NetworkParameters(views, lambda: tuple(self._to_tensor(part) for part in parts))

    def by_name(self, parts: Sequence[tf.Tensor]) -> Tensors:
        """Return the tensors of ``Parameters.tensors`` by name, inside a graph."""
        if self._splits_in_graph:
            return _by_name(self._manifest, parts[0])
        return _reshaped(self._manifest, parts)


def _by_name(manifest: ParameterManifest, vector: tf.Tensor) -> Tensors:
    return _reshaped(manifest, tf.split(vector, [spec.size for spec in manifest.specs]))


def _reshaped(manifest: ParameterManifest, parts: Sequence[tf.Tensor]) -> Tensors:
    return {
        spec.name: tf.reshape(part, spec.shape)
        for spec, part in zip(manifest.specs, parts, strict=True)
    }

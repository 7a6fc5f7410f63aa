"""A network as a function of one flat vector, inside a graph."""

import tensorflow as tf

from relaax.learning.networks.description import Network
from relaax.learning.networks.layers_tf import ObservationTensors, features, head_outputs


def outputs_of(
    network: Network, vector: tf.Tensor, observations: ObservationTensors
) -> dict[str, tf.Tensor]:
    """Return what each head puts out, [B, outputs] by name, for observations [B, ...].

    vector: float32 [size], in the order of the network's manifest. The network has no recurrent
    layer.
    """
    specs = network.manifest.specs
    parts = tf.split(vector, [spec.size for spec in specs])
    parameters = {
        spec.name: tf.reshape(part, spec.shape) for spec, part in zip(specs, parts, strict=True)
    }
    hidden = features(network, parameters, observations)
    return {head.name: head_outputs(head, parameters, hidden) for head in network.heads}

"""Layers of a network inside a TensorFlow graph."""

from collections.abc import Mapping

import tensorflow as tf

from relaax.learning.networks.description import Network

Tensors = Mapping[str, tf.Tensor]

#: Added to the forget gate, so that a fresh cell remembers; Jozefowicz et al. 2015, section 2.2.
FORGET_BIAS = 1.0


def features(network: Network, parameters: Tensors, observations: tf.Tensor) -> tf.Tensor:
    """Return what the layers below the heads make of ``observations`` [B, ...]: float32 [B, F].

    Bytes are pictures: they are scaled to [0, 1].
    """
    if observations.dtype == tf.uint8:
        hidden = tf.cast(observations, tf.float32) / 255.0
    else:
        hidden = observations
    for index, layer in enumerate(network.convolutions):
        kernel, bias = _weights(parameters, f"conv{index}")
        hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernel, layer.stride, "VALID") + bias)
    hidden = tf.reshape(hidden, [tf.shape(hidden)[0], -1]) if network.convolutions else hidden
    for index in range(len(network.dense_units)):
        hidden = tf.nn.relu(dense(parameters, f"dense{index}", hidden))
    return hidden


def lstm_step(parameters: Tensors, inputs: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
    """Return the next state [2, B, H] (cell, output) after ``inputs`` [B, F].

    Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000.
    """
    kernel, bias = _weights(parameters, "lstm")
    cell, output = state[0], state[1]
    gates = tf.concat([inputs, output], axis=1) @ kernel + bias
    admit, candidate, forget, expose = tf.split(gates, 4, axis=1)
    cell = cell * tf.sigmoid(forget + FORGET_BIAS) + tf.sigmoid(admit) * tf.tanh(candidate)
    return tf.stack([cell, tf.sigmoid(expose) * tf.tanh(cell)])


def dense(parameters: Tensors, layer: str, inputs: tf.Tensor) -> tf.Tensor:
    """Return what a linear layer puts out, [B, units], of ``inputs`` [B, F]."""
    kernel, bias = _weights(parameters, layer)
    return inputs @ kernel + bias


def unroll(
    network: Network,
    parameters: Tensors,
    observations: tf.Tensor,
    starts: tf.Tensor,
    recurrent_state: tf.Tensor,
) -> dict[str, tf.Tensor]:
    """Return what each head puts out, [T, K, units] by name, for observations [T, K, ...].

    ``recurrent_state`` [2, K, H] is the one before the first row; it is zero again where a row
    ``starts`` [T, K] an episode.
    """
    rows, count = observations.shape[:2]
    hidden = features(
        network, parameters, tf.reshape(observations, [rows * count, *observations.shape[2:]])
    )
    if network.lstm_size:
        outputs: list[tf.Tensor] = []
        for row in tf.split(hidden, rows):
            continues = 1.0 - starts[len(outputs)][:, tf.newaxis]
            recurrent_state = lstm_step(parameters, row, recurrent_state * continues)
            outputs.append(recurrent_state[1])
        hidden = tf.concat(outputs, axis=0)
    return {
        head.name: tf.reshape(dense(parameters, head.name, hidden), [rows, count, head.units])
        for head in network.heads
    }


def _weights(parameters: Tensors, layer: str) -> tuple[tf.Tensor, tf.Tensor]:
    return parameters[f"{layer}/kernel"], parameters[f"{layer}/bias"]

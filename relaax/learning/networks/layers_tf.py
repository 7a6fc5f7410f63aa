"""The network's forward pass."""

from collections.abc import Mapping

import tensorflow as tf

from ..network import Network

Parameters = Mapping[str, tf.Tensor]

#: Added to the forget gate, so that a fresh cell remembers; Jozefowicz et al. 2015, section 2.2.
FORGET_BIAS = 1.0


def features(network: Network, parameters: Parameters, observations: tf.Tensor) -> tf.Tensor:
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
        kernel, bias = _weights(parameters, f"dense{index}")
        hidden = tf.nn.relu(hidden @ kernel + bias)
    return hidden


def lstm_step(parameters: Parameters, inputs: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
    """Return the next state [2, B, H] (cell, output) after ``inputs`` [B, F].

    Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000.
    """
    kernel, bias = _weights(parameters, "lstm")
    cell, output = state[0], state[1]
    gates = tf.concat([inputs, output], axis=1) @ kernel + bias
    admit, candidate, forget, expose = tf.split(gates, 4, axis=1)
    cell = cell * tf.sigmoid(forget + FORGET_BIAS) + tf.sigmoid(admit) * tf.tanh(candidate)
    return tf.stack([cell, tf.sigmoid(expose) * tf.tanh(cell)])


def heads(parameters: Parameters, hidden: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return logits [B, A] and values [B] of ``hidden`` [B, F]."""
    policy_kernel, policy_bias = _weights(parameters, "policy")
    value_kernel, value_bias = _weights(parameters, "value")
    logits = hidden @ policy_kernel + policy_bias
    values = hidden @ value_kernel + value_bias
    return logits, values[:, 0]


def _weights(parameters: Parameters, layer: str) -> tuple[tf.Tensor, tf.Tensor]:
    return parameters[f"{layer}/kernel"], parameters[f"{layer}/bias"]

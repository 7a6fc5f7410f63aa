"""Layers of a network inside a TensorFlow graph."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import tensorflow as tf

from relaax.learning.networks.description import Head, NamedLayers, Network
from relaax.learning.networks.layers import (
    Convolution,
    Dense,
    LayerNorm,
    Reshape,
    SharedDense,
    TransposedConvolution,
)

Tensors = Mapping[str, tf.Tensor]

#: One observation of each environment, or several by name.
ObservationTensors: TypeAlias = "tf.Tensor | dict[str, tf.Tensor]"

#: Added to the forget gate, so that a fresh cell remembers; Jozefowicz et al. 2015, section 2.2.
FORGET_BIAS = 1.0

#: By the names that layers have for them.
ACTIVATIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "linear": lambda x: x,
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "elu": tf.nn.elu,
    "silu": tf.nn.silu,
    "swish": tf.nn.silu,
    "sigmoid": tf.sigmoid,
}


def encoded(
    network: Network,
    parameters: Tensors,
    observations: ObservationTensors,
    heads: Iterable[Head] | None = None,
) -> Tensors:
    """Return the encoders' outputs of observations [B, ...]: float32 [B, F] by their names.

    Of those alone that ``heads`` depend on; None: of all. Bytes are pictures: they are scaled to
    [0, 1].
    """
    outputs = {}
    for name in network.seen_by(network.joining if heads is None else heads):
        hidden: tf.Tensor = observations[name] if network.is_named else observations
        if hidden.dtype == tf.uint8:
            hidden = tf.cast(hidden, tf.float32) / 255.0
        outputs[name] = _flat(_through(network.encoder_layers[name], parameters, hidden))
    return outputs


def features(network: Network, parameters: Tensors, encoded: Tensors) -> tf.Tensor:
    """Return the outputs [B, F] of the layers below the recurrent one, given ``encoded``."""
    below = network.trunk[:-1] if network.lstm_size else network.trunk
    if not network.shared:
        (some, *_) = encoded.values()
        return tf.zeros([tf.shape(some)[0], 0])
    joined = _joined([encoded[name] for name in network.shared])
    return _flat(_through(below, parameters, joined))


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


def head_outputs(
    network: Network, head: Head, parameters: Tensors, hidden: tf.Tensor, encoded: Tensors
) -> tf.Tensor:
    """Return a head's outputs, [B, outputs]; its free part is last.

    hidden: [B, F], the outputs of the layers that all heads share.
    """
    return _on_top(head, parameters, _joined([hidden, *_beside(network, head, encoded)]))


def frames_outputs(
    network: Network, head: Head, parameters: Tensors, observations: ObservationTensors
) -> tf.Tensor:
    """Return the outputs [K, outputs] of a head that sees ``frames``, of observations [F, K, ...].

    No other head, and no layer that heads share, is evaluated.
    """
    encoders = encoded(network, parameters, _rows(observations), [head])
    frames = _joined(_beside(network, head, encoders))  # [F * K, numbers]
    seen = tf.reshape(frames, [head.frames, -1, frames.shape[-1]])
    return _on_top(head, parameters, _joined(tf.unstack(seen)))


def _beside(network: Network, head: Head, encoders: Tensors) -> list[tf.Tensor]:
    return [encoders[name] for name in network.beside(head)]


def _on_top(head: Head, parameters: Tensors, hidden: tf.Tensor) -> tf.Tensor:
    """Return a head's outputs, [B, outputs], of all that it sees, [B, F]."""
    hidden = _flat(_through(head.named_layers, parameters, hidden))
    parts = []
    if head.units:
        parts.append(_dense(parameters, head.name, hidden) if head.is_linear else hidden)
    if head.free_units:
        free = parameters[f"{head.name}/free"]
        parts.append(tf.broadcast_to(free, [tf.shape(hidden)[0], head.free_units]))
    return _joined(parts)


def unroll(
    network: Network,
    parameters: Tensors,
    observations: ObservationTensors,
    starts: tf.Tensor,
    recurrent_state: tf.Tensor,
    valid: tf.Tensor | None = None,
    heads: Sequence[Head] | None = None,
) -> dict[str, tf.Tensor]:
    """Return the outputs of ``heads``, [T, K, outputs] by name, for observations [T, K, ...].

    ``recurrent_state`` [2, K, H] is the one before the first row; it is zero again where a row
    ``starts`` [T, K] an episode. No gradient flows through the state before the first ``valid`` row
    of a rollout, [T, K] or a row less: a burn-in only finds that state (Kapturowski et al. 2019,
    https://openreview.net/forum?id=r1lyTjAqYX, section 3).
    """
    rows, count = starts.shape
    heads = network.joining if heads is None else heads
    codes = encoded(network, parameters, _rows(observations), heads)
    hidden = features(network, parameters, codes)
    if network.lstm_size:
        outputs: list[tf.Tensor] = []
        # A bias for each row: TensorFlow adds up the gradients of one that all rows share in an
        # order that is up to its threads, and a training could not be repeated to the bit.
        biases = tf.broadcast_to(parameters["lstm/bias"], [rows, 4 * network.lstm_size])
        learnt = [] if valid is None else tf.unstack(tf.cumsum(valid, exclusive=True) > 0)
        for row, bias in zip(tf.split(hidden, rows), tf.split(biases, rows), strict=True):
            continues = 1.0 - starts[len(outputs)][:, tf.newaxis]
            of_row = {**parameters, "lstm/bias": bias}
            recurrent_state *= continues
            if len(outputs) < len(learnt):
                recurrent_state = tf.where(
                    learnt[len(outputs)][:, tf.newaxis],
                    recurrent_state,
                    tf.stop_gradient(recurrent_state),
                )
            recurrent_state = lstm_step(of_row, row, recurrent_state)
            outputs.append(recurrent_state[1])
        hidden = tf.concat(outputs, axis=0)
    return {
        head.name: tf.reshape(
            head_outputs(network, head, parameters, hidden, codes), [rows, count, head.outputs]
        )
        for head in heads
    }


def _rows(observations: ObservationTensors) -> ObservationTensors:
    """Return observations [T, K, ...] as [T * K, ...]."""
    return tf.nest.map_structure(
        lambda part: tf.reshape(part, [part.shape[0] * part.shape[1], *part.shape[2:]]),
        observations,
    )


def _through(layers: NamedLayers, parameters: Tensors, hidden: tf.Tensor) -> tf.Tensor:
    """Return ``hidden`` [B, ...] after all ``layers``, one after another."""
    for name, layer in layers:
        match layer:
            case Dense():
                hidden = _dense(parameters, name, _flat(hidden))
            case SharedDense():
                hidden = _shared_dense(parameters, name, layer, hidden)
            case Convolution():
                kernel, bias = _weights(parameters, name)
                padding = layer.padding.upper()
                hidden = tf.nn.conv2d(hidden, kernel, layer.stride, padding) + bias
            case TransposedConvolution():
                kernel, bias = _weights(parameters, name)
                shape = [tf.shape(hidden)[0], *layer.output_shape(tuple(hidden.shape[1:]))]
                hidden = bias + tf.nn.conv2d_transpose(
                    hidden,
                    tf.transpose(kernel, [0, 1, 3, 2]),
                    shape,
                    layer.stride,
                    layer.padding.upper(),
                )
            case Reshape():
                hidden = tf.reshape(hidden, [-1, *layer.shape])
            case LayerNorm():
                hidden = _normalized(parameters, name, hidden)
            case _:
                raise ValueError(f"an {layer.kind} layer stands only at the end of a network")
        hidden = ACTIVATIONS[layer.activation](hidden)
    return hidden


def _dense(parameters: Tensors, layer: str, inputs: tf.Tensor) -> tf.Tensor:
    """Return a linear layer's outputs, [B, units], of ``inputs`` [B, F]."""
    kernel, bias = _weights(parameters, layer)
    return inputs @ kernel + bias


def _shared_dense(
    parameters: Tensors, name: str, layer: SharedDense, inputs: tf.Tensor
) -> tf.Tensor:
    """Return the outputs of all parts, [B, parts * units], of ``inputs`` [B, ...]."""
    kernel, bias = _weights(parameters, name)
    outputs = tf.reshape(inputs, [-1, kernel.shape[0]]) @ kernel
    outputs = tf.reshape(outputs, [-1, layer.parts, layer.units]) + bias
    return tf.reshape(outputs, [-1, layer.parts * layer.units])


def _normalized(parameters: Tensors, layer: str, inputs: tf.Tensor) -> tf.Tensor:
    centred = inputs - tf.reduce_mean(inputs, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
    normal = centred * tf.math.rsqrt(variance + LayerNorm.EPSILON)
    return normal * parameters[f"{layer}/scale"] + parameters[f"{layer}/offset"]


def _joined(parts: Sequence[tf.Tensor]) -> tf.Tensor:
    return parts[0] if len(parts) == 1 else tf.concat(parts, axis=1)


def _flat(hidden: tf.Tensor) -> tf.Tensor:
    """Return [B, F] of an image [B, H, W, C]; a vector as it is."""
    if len(hidden.shape) <= 2:
        return hidden
    return tf.reshape(hidden, [tf.shape(hidden)[0], -1])


def _weights(parameters: Tensors, layer: str) -> tuple[tf.Tensor, tf.Tensor]:
    return parameters[f"{layer}/kernel"], parameters[f"{layer}/bias"]

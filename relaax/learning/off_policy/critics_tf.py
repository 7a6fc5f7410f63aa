"""The values that critics give, inside a graph."""

from typing import Any

import tensorflow as tf

from relaax.learning.networks import Network
from relaax.learning.networks.parameters_tf import outputs_of
from relaax.learning.off_policy.critics import ACTION, OBSERVATION, VALUE


def values_of(
    critic: Network, vectors: tf.Tensor, count: int, observations: Any, actions: tf.Tensor
) -> tf.Tensor:
    """Return the values of ``actions`` [B, ...] by ``count`` critics, [count, B].

    vectors: the critics' parameters one behind another, [count * size].
    """
    named = observations if isinstance(observations, dict) else {OBSERVATION: observations}
    inputs = {**named, ACTION: actions}
    return tf.stack(
        [outputs_of(critic, vector, inputs)[VALUE][:, 0] for vector in tf.split(vectors, count)]
    )

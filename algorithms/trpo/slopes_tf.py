"""Values and gradients of functions of all parameters, inside a graph."""

from collections.abc import Callable

import tensorflow as tf

#: A function of all parameters, float32 [size].
OfParameters = Callable[[tf.Tensor], tf.Tensor]


def value_and_slope(function: OfParameters, at: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the value and the gradient [size]: 0 for parameters without an effect."""
    with tf.GradientTape() as tape:
        tape.watch(at)
        value = function(at)
    gradient = tape.gradient(value, at, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return value, gradient


def slope(function: OfParameters, at: tf.Tensor) -> tf.Tensor:
    """Return the gradient alone."""
    return value_and_slope(function, at)[1]


def dot(one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """Return the scalar product of two vectors."""
    return tf.tensordot(one, other, 1)

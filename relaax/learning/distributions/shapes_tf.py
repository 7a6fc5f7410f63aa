"""Between the columns of a network's outputs and the shape of actions."""

import tensorflow as tf


def shaped(columns: tf.Tensor, shape: tuple[int, ...]) -> tf.Tensor:
    """Return ``columns`` [..., N] as actions [..., *shape]."""
    if len(shape) == 1:
        return columns
    sizes = tf.concat([tf.shape(columns)[:-1], tf.constant(shape, tf.int32)], axis=0)
    return tf.reshape(columns, sizes)


def as_columns(actions: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """Return actions [..., *shape] as float32 [..., N], the shape of ``columns``."""
    return tf.reshape(tf.cast(actions, tf.float32), tf.shape(columns))

"""Logits of actions that are forbidden, inside a TensorFlow graph; see ``masking``."""

import tensorflow as tf

from relaax.learning.distributions.masking import FORBIDDEN


def masked_logits(logits: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Return logits [..., A], ``FORBIDDEN`` where ``mask`` [..., A] is 0; zeros if all are 0.

    No gradient reaches a logit whose mask is 0.
    """
    is_allowed = tf.cast(mask, tf.bool)
    has_choice = tf.reduce_any(is_allowed, axis=-1, keepdims=True)
    return tf.where(is_allowed, logits, tf.where(has_choice, FORBIDDEN, tf.zeros_like(logits)))

"""Bits, inside a TensorFlow graph; see ``bernoulli``."""

import tensorflow as tf

from relaax.learning.distributions.bernoulli import Bernoulli
from relaax.learning.distributions.masking import FORBIDDEN
from relaax.learning.distributions.shapes_tf import as_columns, shaped


class GraphBernoulli:
    """The independent bits that logits [..., N] make."""

    def __init__(self, distribution: Bernoulli) -> None:
        self._shape = distribution.action_shape

    def choose(self, outputs: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Return the bits int64 [B, ...] that logits [B, N] and noise make."""
        return self.mode(outputs + noise)

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the most probable bits int64 [..., *shape], from logits [..., N]."""
        return shaped(tf.cast(outputs > 0, tf.int64), self._shape)

    def log_likelihood(self, outputs: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Return ``log pi(a | s)`` [...] of bits [..., *shape], from logits [..., N]."""
        bits = as_columns(actions, outputs)
        return tf.reduce_sum(bits * outputs - tf.nn.softplus(outputs), axis=-1)

    def entropy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the entropy in nats [...], from logits [..., N]."""
        terms = tf.nn.softplus(outputs) - tf.sigmoid(outputs) * outputs
        return tf.reduce_sum(terms, axis=-1)

    def kl(self, outputs_p: tf.Tensor, outputs_q: tf.Tensor) -> tf.Tensor:
        """Return ``KL(p || q)`` [...], from logits [..., N] of both."""
        ones = tf.nn.softplus(-outputs_q) - tf.nn.softplus(-outputs_p)
        zeros = tf.nn.softplus(outputs_q) - tf.nn.softplus(outputs_p)
        p = tf.sigmoid(outputs_p)
        return tf.reduce_sum(p * ones + (1.0 - p) * zeros, axis=-1)

    def masked(self, outputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Return logits [..., N] where a bit is always 0 whose ``mask`` [..., N] is 0."""
        return tf.where(tf.cast(mask, tf.bool), outputs, FORBIDDEN)

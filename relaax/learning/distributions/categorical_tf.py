"""One of several actions, inside a TensorFlow graph; see ``categorical``."""

import tensorflow as tf

from relaax.learning.distributions.masking_tf import masked_logits


class GraphCategorical:
    """The distribution that logits [..., A] make."""

    def choose(self, outputs: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Return the actions int64 [B] that logits [B, A] and noise make."""
        return self.mode(outputs + noise)

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the most probable actions int64 [...], from logits [..., A]."""
        return tf.argmax(outputs, axis=-1)

    def log_likelihood(self, outputs: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Return ``log pi(a | s)`` [...] of actions int [...], from logits [..., A]."""
        # By a mask and not by tf.gather, which is far slower under XLA on a CPU.
        chosen = tf.one_hot(actions, outputs.shape[-1])
        return tf.reduce_sum(tf.nn.log_softmax(outputs) * chosen, axis=-1)

    def entropy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the entropy in nats [...], from logits [..., A]."""
        log_p = tf.nn.log_softmax(outputs)
        return -tf.reduce_sum(tf.exp(log_p) * log_p, axis=-1)

    def kl(self, outputs_p: tf.Tensor, outputs_q: tf.Tensor) -> tf.Tensor:
        """Return ``KL(p || q)`` [...], from logits [..., A] of both."""
        log_p, log_q = tf.nn.log_softmax(outputs_p), tf.nn.log_softmax(outputs_q)
        return tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=-1)

    def masked(self, outputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Return logits [..., A] without the actions whose ``mask`` [..., A] is 0."""
        return masked_logits(outputs, mask)

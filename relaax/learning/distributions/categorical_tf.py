"""One of several actions, inside a TensorFlow graph; see ``categorical``."""

import tensorflow as tf


class GraphCategorical:
    """The distribution that logits [..., A] make."""

    def choose(self, outputs: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Return the actions int64 [B] that logits [B, A] and noise make."""
        return tf.argmax(outputs + noise, axis=1)

    def log_likelihood(self, outputs: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Return ``log pi(a | s)`` [...] of actions int [...], from logits [..., A]."""
        # By a mask and not by tf.gather, which is far slower under XLA on a CPU.
        chosen = tf.one_hot(actions, outputs.shape[-1])
        return tf.reduce_sum(tf.nn.log_softmax(outputs) * chosen, axis=-1)

    def entropy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the entropy in nats [...], from logits [..., A]."""
        log_probabilities = tf.nn.log_softmax(outputs)
        return -tf.reduce_sum(tf.exp(log_probabilities) * log_probabilities, axis=-1)

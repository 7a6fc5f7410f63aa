"""The three terms of the actor-critic loss, each a sum over a rollout's steps."""

import tensorflow as tf


def policy_loss(logits: tf.Tensor, actions: tf.Tensor, advantages: tf.Tensor) -> tf.Tensor:
    """Return ``-sum_t log pi(a_t | s_t) * A_t``; no gradient flows through the advantages.

    Mnih et al. 2016, section 4. logits: float32 [T, A]; actions: int32 [T]; advantages: [T].
    """
    log_probabilities = tf.nn.log_softmax(logits)
    chosen = tf.gather(log_probabilities, actions, axis=1, batch_dims=1)
    return -tf.reduce_sum(chosen * tf.stop_gradient(advantages))


def value_loss(values: tf.Tensor, returns: tf.Tensor) -> tf.Tensor:
    """Return ``sum_t (R_t - V(s_t))**2 / 2``; values and returns: float32 [T]."""
    return tf.reduce_sum(tf.square(returns - values)) / 2.0


def entropy(logits: tf.Tensor) -> tf.Tensor:
    """Return ``sum_t H(pi(. | s_t))`` in nats; logits: float32 [T, A]."""
    log_probabilities = tf.nn.log_softmax(logits)
    return -tf.reduce_sum(tf.exp(log_probabilities) * log_probabilities)

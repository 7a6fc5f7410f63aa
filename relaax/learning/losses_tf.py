"""The three terms of the actor-critic loss, each a sum over the steps that are valid."""

import tensorflow as tf


def policy_loss(log_probabilities: tf.Tensor, advantages: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Return ``-sum_t log pi(a_t | s_t) * A_t``; no gradient flows through the advantages.

    Mnih et al. 2016, section 4. log_probabilities (of the actions taken), advantages, valid:
    float32 [T, K].
    """
    return -tf.reduce_sum(valid * log_probabilities * tf.stop_gradient(advantages))


def clipped_policy_loss(
    log_ratios: tf.Tensor, advantages: tf.Tensor, valid: tf.Tensor, clip: float
) -> tf.Tensor:
    """Return ``-sum_t min(r_t * A_t, clip(r_t, 1 - clip, 1 + clip) * A_t)``, r_t = exp(log ratio).

    Schulman et al. 2017 (https://arxiv.org/abs/1707.06347), equation (7). log_ratios: float32
    [T, K], ``log pi(a_t | s_t) - log mu(a_t | s_t)``: the policy that learns against the one that
    acted. Where r_t = 1 its gradient is that of ``policy_loss``.
    """
    advantages = tf.stop_gradient(advantages)
    ratios = tf.exp(log_ratios)
    clipped = tf.clip_by_value(ratios, 1.0 - clip, 1.0 + clip)
    return -tf.reduce_sum(valid * tf.minimum(ratios * advantages, clipped * advantages))


def value_loss(values: tf.Tensor, targets: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Return ``sum_t (R_t - V(s_t))**2 / 2``; all float32 [T, K]."""
    return tf.reduce_sum(valid * tf.square(tf.stop_gradient(targets) - values)) / 2.0


def entropy(logits: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Return ``sum_t H(pi(. | s_t))`` in nats; logits: float32 [T, K, A], valid: [T, K]."""
    log_probabilities = tf.nn.log_softmax(logits)
    each = -tf.reduce_sum(tf.exp(log_probabilities) * log_probabilities, axis=-1)
    return tf.reduce_sum(valid * each)


def log_probabilities_of(logits: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    """Return ``log pi(a | s)`` [...] of actions int32 [...], from logits [..., A]."""
    # By a mask and not by tf.gather, which is far slower under XLA on a CPU.
    chosen = tf.one_hot(actions, logits.shape[-1])
    return tf.reduce_sum(tf.nn.log_softmax(logits) * chosen, axis=-1)

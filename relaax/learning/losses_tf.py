"""Terms that losses are made of, each a sum over the steps that are valid.

All tensors are float32 [T, K], time-major: K rollouts of T rows, see ``RolloutBatch``.
"""

import tensorflow as tf

#: Larger log ratios count as this one, which lies above every clip: exp(89) is infinite in float32.
MOST_LOG_RATIO = 20.0


def policy_loss(log_probabilities: tf.Tensor, advantages: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Return ``-sum_t log pi(a_t | s_t) * A_t``; no gradient flows through the advantages.

    Mnih et al. 2016 (https://arxiv.org/abs/1602.01783), section 4; for REINFORCE A_t is the return
    less a baseline, Williams 1992. ``log_probabilities``: of the actions taken.
    """
    return -tf.reduce_sum(valid * log_probabilities * tf.stop_gradient(advantages))


def clipped_policy_loss(
    log_ratios: tf.Tensor, advantages: tf.Tensor, valid: tf.Tensor, clip: float
) -> tf.Tensor:
    """Return ``-sum_t min(r_t * A_t, clip(r_t, 1 - clip, 1 + clip) * A_t)``, r_t = exp(log ratio).

    Schulman et al. 2017 (https://arxiv.org/abs/1707.06347), equation (7). log_ratios:
    ``log pi(a_t | s_t) - log mu(a_t | s_t)``, the policy that learns against the one that acted.
    Where r_t = 1 it has the gradient of ``policy_loss``. Ratios above exp(20) count as that, and
    have no gradient: such an action is not held back in this update, even if it was a bad one.
    """
    advantages = tf.stop_gradient(advantages)
    ratios = tf.exp(tf.minimum(log_ratios, MOST_LOG_RATIO))
    clipped = tf.clip_by_value(ratios, 1.0 - clip, 1.0 + clip)
    return -tf.reduce_sum(valid * tf.minimum(ratios * advantages, clipped * advantages))


def value_loss(values: tf.Tensor, targets: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Return ``sum_t (R_t - V(s_t))**2 / 2``; no gradient flows through the targets."""
    return tf.reduce_sum(valid * tf.square(tf.stop_gradient(targets) - values)) / 2.0

"""What soft actor-critic minimises.

Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications"
(https://arxiv.org/abs/1812.05905).
"""

import tensorflow as tf


def soft_target(
    rewards: tf.Tensor,
    discounts: tf.Tensor,
    next_values: tf.Tensor,
    next_log_likelihoods: tf.Tensor,
    temperature: tf.Tensor,
) -> tf.Tensor:
    """Return what both critics learn, [B]: equations (3) and (6), with the smaller next value.

    discounts: [B], gamma to the number of steps, and 0 behind the end of an episode.
    next_values: [2, B], of the target critics. next_log_likelihoods: [B].
    """
    soft_values = tf.reduce_min(next_values, axis=0) - temperature * next_log_likelihoods
    return rewards + discounts * soft_values


def critic_loss(values: tf.Tensor, targets: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Return the loss of both critics, equation (5): values [2, B], targets [B], weights [B]."""
    errors = tf.square(values - targets[tf.newaxis])
    return 0.5 * tf.reduce_mean(tf.reduce_sum(errors, axis=0) * weights)


def policy_loss(values: tf.Tensor, log_likelihoods: tf.Tensor, temperature: tf.Tensor) -> tf.Tensor:
    """Return the loss of the policy, equation (7): values [2, B] and log-likelihoods [B]."""
    return tf.reduce_mean(temperature * log_likelihoods - tf.reduce_min(values, axis=0))


def temperature_loss(
    log_temperature: tf.Tensor, log_likelihoods: tf.Tensor, target_entropy: float
) -> tf.Tensor:
    """Return the loss of the logarithm of the temperature, equation (18), whose slope it has."""
    distance = tf.stop_gradient(tf.reduce_mean(log_likelihoods) + target_entropy)
    return -tf.reduce_sum(log_temperature) * distance

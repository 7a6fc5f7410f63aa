"""What DDPG and TD3 minimise.

Lillicrap et al. 2016, https://arxiv.org/abs/1509.02971; Fujimoto et al. 2018,
https://arxiv.org/abs/1802.09477.
"""

import tensorflow as tf


def target_values(rewards: tf.Tensor, discounts: tf.Tensor, next_values: tf.Tensor) -> tf.Tensor:
    """Return what all critics learn, [B]: the smallest of the next values [critics, B] counts.

    Fujimoto et al. 2018, equation (10). discounts: gamma to the number of steps, and 0 behind the
    end of an episode.
    """
    return rewards + discounts * tf.reduce_min(next_values, axis=0)


def smoothed_places(places: tf.Tensor, noise: tf.Tensor, sigma: float, most: float) -> tf.Tensor:
    """Return actions [B, A] in [-1, 1] with noise that is cut to ``most``; equation (14).

    noise: standard normal [B, A].
    """
    return tf.clip_by_value(places + tf.clip_by_value(sigma * noise, -most, most), -1.0, 1.0)


def critic_loss(values: tf.Tensor, targets: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Return the sum over critics of mean squared errors: values [critics, B], the others [B]."""
    errors = tf.square(values - targets[tf.newaxis])
    return tf.reduce_mean(tf.reduce_sum(errors, axis=0) * weights)


def policy_loss(values: tf.Tensor) -> tf.Tensor:
    """Return minus the mean value [B] of the policy's actions; Lillicrap et al. 2016, (6)."""
    return -tf.reduce_mean(values)

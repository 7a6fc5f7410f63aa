"""What DQN minimises, of its values or of distributions of returns."""

import tensorflow as tf


def huber(errors: tf.Tensor) -> tf.Tensor:
    """Return ``e**2 / 2`` up to 1 and ``|e| - 1/2`` behind it, of errors [B].

    Its slope is the error cut to [-1, 1]: Mnih et al. 2015, "Training algorithm for deep
    Q-networks".
    """
    sizes = tf.abs(errors)
    small = tf.minimum(sizes, 1.0)
    return small * (sizes - 0.5 * small)


def projected(
    probabilities: tf.Tensor, support: tf.Tensor, rewards: tf.Tensor, discounts: tf.Tensor
) -> tf.Tensor:
    """Return the distribution [B, atoms] of ``rewards + discounts * return`` on ``support``.

    Bellemare et al. 2017, equation (7): the probability [B, atoms] of each return of ``support``
    [atoms] goes to the two atoms beside where it has moved; beyond an end it stays at that end.
    """
    low, high = support[0], support[-1]
    step = (high - low) / (support.shape[0] - 1)
    moved = rewards[:, tf.newaxis] + discounts[:, tf.newaxis] * support
    moved = tf.clip_by_value(moved, low, high)
    # [B, atoms, atoms]: how much of the last atom's probability the one before it gets.
    distances = tf.abs(moved[:, tf.newaxis, :] - support[tf.newaxis, :, tf.newaxis]) / step
    parts = tf.clip_by_value(1.0 - distances, 0.0, 1.0)
    return tf.reduce_sum(parts * probabilities[:, tf.newaxis, :], axis=2)


def cross_entropy(targets: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Return ``-sum target * log p`` [B], of targets and logits [B, atoms]."""
    return -tf.reduce_sum(targets * tf.nn.log_softmax(logits), axis=1)


def divergence(targets: tf.Tensor, cross_entropies: tf.Tensor) -> tf.Tensor:
    """Return ``KL(target || p)`` [B]; by it Hessel et al. 2018 set priorities."""
    return cross_entropies + tf.reduce_sum(tf.math.xlogy(targets, targets), axis=1)

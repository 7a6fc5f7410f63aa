"""What proximal policy optimization minimises.

Schulman et al. 2017 (https://arxiv.org/abs/1707.06347): L^CLIP, equation (7), or L^KLPEN, equation
(8), with the cut-off of Fan et al. 2018 ("Surreal"), a square above twice the target.

All tensors are float32 [T, K], time-major, but for distributions' outputs [T, K, N].
"""

from dataclasses import dataclass

import tensorflow as tf

from relaax.learning import losses_tf as losses
from relaax.learning.distributions import GraphDistribution

Terms = dict[str, tf.Tensor]


@dataclass(frozen=True)
class PpoLoss:
    """policy loss - entropy_beta * entropy + value_loss_weight * value loss, each a mean."""

    distribution: GraphDistribution
    entropy_beta: float
    value_loss_weight: float
    #: Whether the ratio of likelihoods is clipped; else a penalty keeps the policy near.
    clips: bool
    kl_target: float
    kl_cutoff: float
    value_clip: float | None

    def policy_loss(
        self, log_ratios: tf.Tensor, advantages: tf.Tensor, valid: tf.Tensor, clip: tf.Tensor
    ) -> tf.Tensor:
        """Return the surrogate's loss, summed over valid steps."""
        if self.clips:
            return losses.clipped_policy_loss(log_ratios, advantages, valid, clip)
        ratios = tf.exp(tf.minimum(log_ratios, losses.MOST_LOG_RATIO))
        return -tf.reduce_sum(valid * ratios * tf.stop_gradient(advantages))

    def penalty(self, kl: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
        """Return what the mean KL divergence from the policy before costs."""
        if self.clips:
            return tf.zeros_like(kl)
        excess = tf.maximum(kl - 2.0 * self.kl_target, 0.0)
        return weight * kl + self.kl_cutoff * tf.square(excess)

    def value_loss(
        self, values: tf.Tensor, before: tf.Tensor, targets: tf.Tensor, valid: tf.Tensor
    ) -> tf.Tensor:
        """Return half of the squared error, summed; with a ``value_clip`` that of the worse value.

        The other one has moved away from the value ``before`` by no more than the clip.
        """
        if self.value_clip is None:
            return losses.value_loss(values, targets, valid)
        moved = tf.clip_by_value(values - before, -self.value_clip, self.value_clip)
        squares = tf.maximum(tf.square(values - targets), tf.square(before + moved - targets))
        return tf.reduce_sum(valid * squares) / 2.0

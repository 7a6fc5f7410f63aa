"""Proximal policy optimization.

Schulman et al. 2017 (https://arxiv.org/abs/1707.06347): several passes over the steps of a batch
of rollouts, in minibatches (``relaax.learning.on_policy``), each of which is a step down ``loss``.
A clip or a penalty keeps the policy near the one that has acted; ``adaptation`` moves these.

All tensors are float32 [T, K], time-major, but for distributions' outputs [T, K, N].
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.learning import losses_tf as losses
from relaax.learning.distributions import GraphDistribution
from relaax.learning.networks import POLICY
from relaax.learning.on_policy import VALUE
from relaax.learning.on_policy.passes_tf import RETURNS
from relaax.learning.on_policy.sequences import Experience
from relaax.learning.returns_tf import n_step_targets, normalized
from relaax.learning.rollouts import LOG_PROBABILITY, RolloutBatch

from .value_scale import ValueScale

#: The name of advantages among the targets.
ADVANTAGES = "advantages"

Terms = dict[str, tf.Tensor]
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Ppo:
    """policy loss + penalty - entropy_beta * entropy + value_loss_weight * value loss, all means.

    Policy loss and entropy are means over the steps in which the policy's own action was executed;
    the KL divergence, which keeps the policy near in every state, is one over all.
    """

    distribution: GraphDistribution
    discount: float
    trace_decay: float
    #: Whether the advantages of a batch get mean 0 and standard deviation 1.
    normalizes: bool
    entropy_beta: float
    value_loss_weight: float
    #: Whether the ratio of likelihoods is clipped; else a penalty keeps the policy near.
    clips: bool
    kl_target: float
    kl_cutoff: float
    value_clip: float | None
    #: From which error on the value loss is linear.
    huber_delta: float | None = None
    #: What values are normalised by.
    value_scale: ValueScale | None = None
    #: The largest weight of the policy before the first pass against the one that acted; None: the
    #: ratio is that against the policy that acted.
    decoupled: float | None = None

    def targets(
        self, rollouts: RolloutBatch, outputs: Mapping[str, FloatArray]
    ) -> dict[str, tf.Tensor]:
        """Return returns and advantages: Schulman et al. 2016 (https://arxiv.org/abs/1506.02438).

        outputs: of each head before the first pass, [T + 1, K, N].
        """
        values, scale = outputs[VALUE][..., 0], self.value_scale
        returns, advantages = n_step_targets(
            rollouts.rewards,
            rollouts.terminated,
            rollouts.valid,
            values if scale is None else scale.restored(values),
            self.discount,
            self.trace_decay,
        )
        if scale is not None:
            scale.add(returns.numpy()[rollouts.valid > 0])
            returns = tf.constant(scale.normalized(returns.numpy()))
        if self.normalizes:
            advantages = normalized(advantages, rollouts.on_policy)
        return {RETURNS: returns, ADVANTAGES: advantages}

    def decoupled_loss(
        self,
        log_ratios: tf.Tensor,
        proximal: tf.Tensor,
        advantages: tf.Tensor,
        valid: tf.Tensor,
        clip: tf.Tensor,
    ) -> tf.Tensor:
        """Return minus the decoupled surrogate, summed: Hilton et al. 2021, arXiv 2110.00641.

        log_ratios: of the policy against the proximal one, the policy before the first pass, which
        is clipped around; proximal: of that one against the policy that acted. Its weight, at most
        ``decoupled``, has no gradient (section 3; equation (5) of AReaL, arXiv 2505.24298).
        """
        weights = tf.exp(tf.minimum(proximal, losses.MOST_LOG_RATIO))
        weights = tf.minimum(tf.stop_gradient(weights), self.decoupled)
        return self.policy_loss(log_ratios, weights * advantages, valid, clip)

    def loss(
        self, outputs: Mapping[str, tf.Tensor], batch: Experience, knobs: tf.Tensor
    ) -> tuple[tf.Tensor, Terms]:
        """Return the loss of a minibatch, and its terms: equation (9) with (7) or (8).

        ``knobs``: the clip, and the weight of the penalty. ``clipped`` is the share of steps whose
        ratio lies beyond the clip.
        """
        policy, values, before = outputs[POLICY], outputs[VALUE][..., 0], batch.before
        clip, penalty = knobs[0], knobs[1]
        count, own_count = _number(batch.valid), _number(batch.on_policy)
        acted = batch.extras[LOG_PROBABILITY]
        log_ratios = self.distribution.log_likelihood(policy, batch.actions)
        surrogate = self.policy_loss
        if self.decoupled is not None:
            near = tf.stop_gradient(self.distribution.log_likelihood(before[POLICY], batch.actions))
            surrogate = partial(self.decoupled_loss, proximal=near - acted)
            acted = near
        log_ratios -= acted
        kl = _sum(batch.valid, self.distribution.kl(before[POLICY], policy)) / count
        is_clipped = tf.cast(tf.abs(tf.exp(log_ratios) - 1.0) > clip, tf.float32)
        terms = {
            "policy loss": surrogate(
                log_ratios, advantages=batch.targets[ADVANTAGES], valid=batch.on_policy, clip=clip
            )
            / own_count,
            "value loss": self.value_loss(
                values, before[VALUE][..., 0], batch.targets[RETURNS], batch.valid
            )
            / count,
            "entropy": _sum(batch.on_policy, self.distribution.entropy(policy)) / own_count,
            "kl": kl,
            "clipped": _sum(batch.on_policy, is_clipped) / own_count,
        }
        total = (
            terms["policy loss"]
            + self.penalty(kl, penalty)
            + self.value_loss_weight * terms["value loss"]
            - self.entropy_beta * terms["entropy"]
        )
        return total, terms

    def policy_loss(
        self, log_ratios: tf.Tensor, advantages: tf.Tensor, valid: tf.Tensor, clip: tf.Tensor
    ) -> tf.Tensor:
        """Return minus the surrogate, summed: L^CLIP, equation (7), or L^CPI, equation (6)."""
        if self.clips:
            return losses.clipped_policy_loss(log_ratios, advantages, valid, clip)
        ratios = tf.exp(tf.minimum(log_ratios, losses.MOST_LOG_RATIO))
        return -_sum(valid, ratios * tf.stop_gradient(advantages))

    def penalty(self, kl: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
        """Return the price of the mean KL divergence from the policy before: L^KLPEN, equation (8).

        With the cut-off of Fan et al. 2018 ("Surreal"), a square above twice the target.
        """
        if self.clips:
            return tf.zeros_like(kl)
        excess = tf.maximum(kl - 2.0 * self.kl_target, 0.0)
        return weight * kl + self.kl_cutoff * tf.square(excess)

    def value_loss(
        self, values: tf.Tensor, before: tf.Tensor, targets: tf.Tensor, valid: tf.Tensor
    ) -> tf.Tensor:
        """Return half of the squared error, summed; with a ``value_clip`` the larger error counts.

        The other one is of a value that is no further from ``before`` than the clip. With a
        ``huber_delta`` the loss goes on in a straight line from there: Huber 1964, equation (1.3)
        (https://doi.org/10.1214/aoms/1177703732).
        """
        errors = tf.abs(values - targets)
        if self.value_clip is not None:
            moved = tf.clip_by_value(values - before, -self.value_clip, self.value_clip)
            errors = tf.maximum(errors, tf.abs(before + moved - targets))
        near = errors if self.huber_delta is None else tf.minimum(errors, self.huber_delta)
        return _sum(valid, near * (errors - near / 2.0))


def _sum(valid: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(valid * numbers)


def _number(valid: tf.Tensor) -> tf.Tensor:
    return tf.maximum(tf.reduce_sum(valid), 1.0)

"""Distributed advantage actor-critic, and its corrections for rollouts of older policies.

Mnih et al. 2016 (https://arxiv.org/abs/1602.01783), algorithm S3: each worker computes the gradient
of ``loss`` over the rollouts that are full, and the parameter server applies it. Where the policy
has moved on meanwhile, the targets are those of Espeholt et al. 2018 (V-trace,
https://arxiv.org/abs/1802.01561); with a learner in a process of its own that is IMPALA.

All tensors are float32 [T, K], time-major, but for the outputs of the network [T + 1, K, N].
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import tensorflow as tf

from relaax.learning import losses_tf as losses
from relaax.learning.distributions import GraphDistribution, Maskable
from relaax.learning.gradients_tf import GraphRollouts, Terms
from relaax.learning.networks import POLICY
from relaax.learning.on_policy import VALUE, VTraceSection
from relaax.learning.returns_tf import n_step_targets, normalized, vtrace_targets
from relaax.learning.rollouts import LOG_PROBABILITY


@dataclass(frozen=True)
class ActorCritic:
    """policy loss - entropy_beta * entropy + value_loss_weight * value loss.

    Section 4 of the paper, with n-step returns, or with the targets of V-trace. The policy loss is
    that of Schulman et al. 2017 with a ``policy_clip``.

    Steps in which another action was executed than the policy's own are in the value loss alone.
    How probable they were is not known: V-trace takes their ratio for 1, so that values are those
    of the policy with all that intervenes. Their entropy is left out because nothing would hold it
    back where the policy earns nothing.
    """

    distribution: GraphDistribution
    discount: float
    trace_decay: float
    entropy_beta: float
    value_loss_weight: float
    normalize_advantages: bool
    policy_clip: float | None
    vtrace: VTraceSection | None
    #: The observation that says which actions are allowed.
    action_mask: str | None = None

    def loss(
        self, outputs: Mapping[str, tf.Tensor], batch: GraphRollouts
    ) -> tuple[tf.Tensor, Terms]:
        """Return the loss and its three terms, summed over all steps."""
        policy, values = self._policy(outputs, batch), outputs[VALUE][..., 0]
        chosen = self.distribution.log_likelihood(policy, batch.actions)
        log_ratios = chosen - batch.extras[LOG_PROBABILITY]
        on_policy = batch.on_policy
        targets, advantages, weights = self._targets(
            batch, tf.stop_gradient(values), tf.stop_gradient(log_ratios)
        )
        if self.normalize_advantages:
            advantages = normalized(advantages, on_policy)
        if self.policy_clip is None:
            policy_loss = losses.policy_loss(chosen, weights * advantages, on_policy)
        else:
            policy_loss = losses.clipped_policy_loss(
                log_ratios, advantages, on_policy, self.policy_clip
            )
        value_loss = losses.value_loss(values[:-1], targets, batch.valid)
        entropy = tf.reduce_sum(on_policy * self.distribution.entropy(policy))
        loss = policy_loss - self.entropy_beta * entropy + self.value_loss_weight * value_loss
        return loss, {"policy loss": policy_loss, "value loss": value_loss, "entropy": entropy}

    def _policy(self, outputs: Mapping[str, tf.Tensor], batch: GraphRollouts) -> tf.Tensor:
        """Return the policy's outputs in each step, with masked actions excluded."""
        policy = outputs[POLICY][:-1]
        if self.action_mask is None:
            return policy
        distribution = cast(Maskable, self.distribution)
        return distribution.masked(policy, batch.allowed(self.action_mask))

    def _targets(
        self, batch: GraphRollouts, values: tf.Tensor, log_ratios: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return value targets, advantages, and the weights of these in the policy loss."""
        rows = (batch.rewards, batch.terminated, batch.valid, values)
        if self.vtrace is None:
            returns, advantages = n_step_targets(*rows, self.discount, self.trace_decay)
            return returns, advantages, tf.ones_like(advantages)
        return vtrace_targets(
            *rows,
            log_ratios * batch.on_policy,
            self.discount,
            self.trace_decay,
            clip_rho=self.vtrace.clip_rho,
            clip_c=self.vtrace.clip_c,
        )

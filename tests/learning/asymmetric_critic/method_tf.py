"""Advantage actor-critic (Mnih et al. 2016, https://arxiv.org/abs/1602.01783, algorithm S3).

With a critic that sees more than the actor: Pinto et al. 2017, https://arxiv.org/abs/1710.06542.
"""

from dataclasses import dataclass

import tensorflow as tf

from relaax.learning.distributions import GraphDistribution
from relaax.learning.losses_tf import policy_loss, value_loss
from relaax.learning.networks import POLICY
from relaax.learning.on_policy import VALUE
from relaax.learning.returns_tf import n_step_targets


@dataclass(frozen=True)
class ActorCritic:
    distribution: GraphDistribution
    discount: float
    entropy_beta: float

    def loss(self, outputs, batch):
        """Return the loss of rollouts, and its terms."""
        policy, values = outputs[POLICY][:-1], outputs[VALUE][..., 0]
        rows = batch.rewards, batch.terminated, batch.valid, tf.stop_gradient(values)
        returns, advantages = n_step_targets(*rows, self.discount)
        chosen = self.distribution.log_likelihood(policy, batch.actions)
        terms = {
            "policy loss": policy_loss(chosen, advantages, batch.on_policy),
            "value loss": value_loss(values[:-1], returns, batch.valid),
            "entropy": tf.reduce_sum(batch.on_policy * self.distribution.entropy(policy)),
        }
        bonus = self.entropy_beta * terms["entropy"]
        return terms["policy loss"] + terms["value loss"] - bonus, terms

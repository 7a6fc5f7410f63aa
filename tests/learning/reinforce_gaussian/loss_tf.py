"""The loss of REINFORCE."""

from dataclasses import dataclass

import tensorflow as tf

from relaax.learning.distributions import GraphDistribution
from relaax.learning.losses_tf import policy_loss
from relaax.learning.networks import POLICY
from relaax.learning.returns_tf import n_step_targets, normalized


@dataclass(frozen=True)
class Reinforce:
    """The policy gradient with returns; their mean is the baseline."""

    distribution: GraphDistribution
    discount: float

    def loss(self, outputs, batch):
        """Return the loss over episodes that end within their rollout."""
        chosen = self.distribution.log_likelihood(outputs[POLICY][:-1], batch.actions)
        rows = (batch.rewards, batch.terminated, batch.valid, tf.zeros_like(batch.starts))
        returns, _ = n_step_targets(*rows, self.discount)
        loss = policy_loss(chosen, normalized(returns, batch.on_policy), batch.on_policy)
        return loss, {"policy loss": loss}

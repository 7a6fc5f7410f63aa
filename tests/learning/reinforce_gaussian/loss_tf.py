"""What REINFORCE minimises."""

import math
from dataclasses import dataclass

import tensorflow as tf

from relaax.learning.losses_tf import policy_loss
from relaax.learning.networks import POLICY
from relaax.learning.returns_tf import n_step_targets, normalized


def log_likelihood(outputs, actions):
    """Return the log-likelihood of actions [..., N] from outputs [..., 2 N]."""
    mean, log_sigma = tf.split(outputs, 2, axis=-1)
    squares = tf.square((actions - mean) * tf.exp(-log_sigma))
    return -tf.reduce_sum(0.5 * squares + log_sigma + 0.5 * math.log(2 * math.pi), axis=-1)


@dataclass(frozen=True)
class Reinforce:
    """The policy gradient with returns; their mean is the baseline."""

    discount: float

    def loss(self, outputs, batch):
        """Return the loss over episodes that end within their rollout."""
        chosen = log_likelihood(outputs[POLICY][:-1], batch.actions)
        rows = (batch.rewards, batch.terminated, batch.valid, tf.zeros_like(batch.starts))
        returns, _ = n_step_targets(*rows, self.discount)
        loss = policy_loss(chosen, normalized(returns, batch.valid), batch.valid)
        return loss, {"policy loss": loss}

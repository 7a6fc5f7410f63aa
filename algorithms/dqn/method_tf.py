"""Q-learning with a deep network: of values, or of distributions of returns.

Mnih et al. 2015, "Human-level control through deep reinforcement learning", algorithm 1; double
(van Hasselt et al. 2016, https://arxiv.org/abs/1509.06461), dueling (Wang et al. 2016,
https://arxiv.org/abs/1511.06581) and distributional (Bellemare et al. 2017,
https://arxiv.org/abs/1707.06887, algorithm 1). At each update the network learns what a step has
earned and the best action behind it by the target network, which follows at some of them.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from relaax.learning.distributions import ActionValues
from relaax.learning.distributions.categorical_tf import GraphActionValues
from relaax.learning.networks import Network
from relaax.learning.networks.parameters_tf import outputs_of
from relaax.learning.off_policy import TransitionBatch
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.off_policy.update_tf import LimitedUpdate, Losses
from relaax.learning.variables_tf import Variables

#: The follower of the network.
TARGET = "target"


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


class QLearning(LimitedUpdate):
    """Updates the network and its target; it draws nothing.

    The target follows as ``GraphUpdate`` says. ``is_double``: the network chooses the action behind
    a step, and its target values it. Gradients longer than ``gradient_norm`` are scaled down. Of
    distributions the error of a transition is their divergence. ``action_mask`` names the
    observation that says which actions are allowed: no other is the best one behind a step.
    """

    def __init__(
        self,
        network: Network,
        values: ActionValues,
        variables: Variables,
        target_rate: float,
        target_every: int,
        is_double: bool = True,
        gradient_norm: float | None = None,
        action_mask: str | None = None,
    ) -> None:
        super().__init__(variables, target_rate, target_every, gradient_norm)
        self._network = network
        self._values = values
        self._graph_values = GraphActionValues(values)
        self._is_double = is_double
        self._mask = action_mask

    def losses(
        self, batch: TransitionBatch, at: Mapping[str, tf.Tensor], names: tuple[str, ...]
    ) -> Losses:
        """See GraphUpdate."""
        learn = self._losses if self._values.atoms == 1 else self._distributional_losses
        outputs = self._outputs(at[POLICY_VARIABLE], batch.observations)
        losses, errors = learn(batch, outputs, self._behind(batch, at))
        loss = tf.reduce_mean(losses * batch.weights)
        value = tf.reduce_mean(tf.reduce_max(self._graph_values.values(outputs), axis=1))
        return Losses({POLICY_VARIABLE: loss}, errors, {"loss": loss, "value": value})

    def _behind(self, batch: TransitionBatch, at: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Return the outputs [B, A, atoms] of the best actions behind a step; 0 for others."""
        outputs = chosen_by = self._outputs(at[TARGET], batch.next_observations)
        if self._is_double:
            chosen_by = self._outputs(at[POLICY_VARIABLE], batch.next_observations)
        best = self._one_hot(self._graph_values.mode(chosen_by))
        return tf.reduce_sum(self._graph_values.logits(outputs) * best, axis=1)

    def _losses(
        self, batch: TransitionBatch, outputs: tf.Tensor, behind: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        targets = batch.rewards + batch.discounts * behind[:, 0]
        errors = self._taken(outputs, batch.actions)[:, 0] - targets
        return huber(errors), tf.abs(errors)

    def _distributional_losses(
        self, batch: TransitionBatch, outputs: tf.Tensor, behind: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        support = tf.constant(self._values.support)
        targets = projected(tf.nn.softmax(behind), support, batch.rewards, batch.discounts)
        losses = cross_entropy(targets, self._taken(outputs, batch.actions))
        return losses, divergence(targets, losses)

    def _taken(self, outputs: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Return the outputs of the actions [B] that were taken, [B, atoms]."""
        return tf.reduce_sum(self._graph_values.logits(outputs) * self._one_hot(actions), axis=1)

    def _one_hot(self, actions: tf.Tensor) -> tf.Tensor:
        """Return 1 for ``actions`` [B] and 0 for the others, [B, A, 1]."""
        return tf.one_hot(actions, self._values.actions)[:, :, tf.newaxis]

    def _outputs(self, vector: tf.Tensor, observations: Any) -> tf.Tensor:
        """Return the outputs of all heads, [B, N], and the mask behind them."""
        by_head = outputs_of(self._network, vector, observations)
        outputs = tf.concat([by_head[head.name] for head in self._network.heads], axis=1)
        if self._mask is None:
            return outputs
        newest = observations[self._mask][:, -self._values.actions :]  # of a history
        return self._graph_values.masked(outputs, newest)

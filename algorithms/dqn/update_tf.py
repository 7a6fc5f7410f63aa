"""The gradient of DQN."""

from typing import Any

import tensorflow as tf

from relaax.learning.distributions import ActionValues
from relaax.learning.distributions.categorical_tf import GraphActionValues
from relaax.learning.networks import Network
from relaax.learning.networks.parameters_tf import outputs_of
from relaax.learning.off_policy import TransitionBatch
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.off_policy.update_tf import GraphUpdate, Slopes
from relaax.learning.off_policy.variables_tf import Variables

from .losses_tf import cross_entropy, divergence, huber, projected

#: What follows the network.
TARGET = "target"


class DqnUpdate(GraphUpdate):
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
        super().__init__(variables, target_rate, target_every)
        self._network = network
        self._values = values
        self._graph_values = GraphActionValues(values)
        self._is_double = is_double
        self._gradient_norm = gradient_norm
        self._mask = action_mask

    def slopes(self, batch: TransitionBatch, names: tuple[str, ...]) -> Slopes:
        """See GraphUpdate."""
        learn = self._losses if self._values.atoms == 1 else self._distributional_losses
        behind = self._behind(batch)
        with tf.GradientTape() as tape:
            vector = tf.identity(self.variables[POLICY_VARIABLE])
            tape.watch(vector)
            outputs = self._outputs(vector, batch.observations)
            losses, errors = learn(batch, outputs, behind)
            loss = tf.reduce_mean(losses * batch.weights)
        gradient = tape.gradient(loss, vector)
        norm = tf.norm(gradient)
        if self._gradient_norm is not None:
            gradient *= tf.minimum(1.0, self._gradient_norm / tf.maximum(norm, 1e-12))
        value = tf.reduce_mean(tf.reduce_max(self._graph_values.values(outputs), axis=1))
        terms = {"loss": loss, "value": value, "gradient norm": norm}
        return Slopes({POLICY_VARIABLE: gradient}, errors, terms)

    def _behind(self, batch: TransitionBatch) -> tf.Tensor:
        """Return the outputs [B, A, atoms] of the best actions behind a step; 0 for others."""
        outputs = self._outputs(self.variables[TARGET], batch.next_observations)
        chosen_by = outputs
        if self._is_double:
            chosen_by = self._outputs(self.variables[POLICY_VARIABLE], batch.next_observations)
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
        """Return what belongs to the actions [B] that were taken, [B, atoms]."""
        return tf.reduce_sum(self._graph_values.logits(outputs) * self._one_hot(actions), axis=1)

    def _one_hot(self, actions: tf.Tensor) -> tf.Tensor:
        """Return 1 for ``actions`` [B] and 0 for the others, [B, A, 1]."""
        return tf.one_hot(actions, self._values.actions)[:, :, tf.newaxis]

    def _outputs(self, vector: tf.Tensor, observations: Any) -> tf.Tensor:
        """Return what all heads put out, [B, N], and the mask behind it."""
        by_head = outputs_of(self._network, vector, observations)
        outputs = tf.concat([by_head[head.name] for head in self._network.heads], axis=1)
        if self._mask is None:
            return outputs
        newest = observations[self._mask][:, -self._values.actions :]  # of a history
        return self._graph_values.masked(outputs, newest)

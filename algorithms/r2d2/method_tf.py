"""Q-learning with a recurrent network, from stored sequences.

Kapturowski et al. 2019, "Recurrent experience replay in distributed reinforcement learning"
(https://openreview.net/forum?id=r1lyTjAqYX), section 2.3: double Q-learning over ``n_step`` steps
of sequences that begin with the recurrent state that was stored, and with rows that the network
only passes through. Values are learnt in the scale of h (Pohlen et al. 2018,
https://arxiv.org/abs/1805.11593, proposition A.2), and sequences are drawn by their errors.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import tensorflow as tf

from relaax.algorithm_base import Input
from relaax.learning.distributions import ActionValues
from relaax.learning.distributions.categorical_tf import GraphActionValues
from relaax.learning.gradients_tf import GraphRollouts, Terms
from relaax.learning.graph_learner_tf import GraphLearner
from relaax.learning.networks import Network
from relaax.learning.networks.parameters_tf import unrolled
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.steps import LIKELIHOOD
from relaax.learning.variables_tf import Variables, scaled_down

#: The follower of the network.
TARGET = "target"

#: The slope of h far from 0: it can be inverted.
EPSILON = 1e-3


def rescaled(values: tf.Tensor) -> tf.Tensor:
    """Return ``h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x`` of values of any shape."""
    return tf.sign(values) * (tf.sqrt(tf.abs(values) + 1.0) - 1.0) + EPSILON * values


def unscaled(values: tf.Tensor) -> tf.Tensor:
    """Return the inverse of ``rescaled``."""
    size = tf.abs(values) + 1.0 + EPSILON
    # (root - 1) / (2 epsilon), without the difference of two numbers that are almost equal
    base = 2.0 * size / (tf.sqrt(1.0 + 4.0 * EPSILON * size) + 1.0)
    return tf.sign(values) * (tf.square(base) - 1.0)


def returns_over(
    n_step: int, rewards: tf.Tensor, discounts: tf.Tensor, valid: tf.Tensor, values: tf.Tensor
) -> tf.Tensor:
    """Return the rewards of ``n_step`` steps and the value behind them, discounted, [T, K].

    There are fewer steps before the last row, and before a row that is not valid: its value stands
    for the rest. rewards, discounts (0 behind the end of an episode), valid: float32 [T, K];
    values: float32 [T + 1, K].
    """
    goes_on = tf.concat([valid[1:], tf.zeros_like(valid[:1])], axis=0)
    returns = values[1:]
    for step in range(n_step):
        later = tf.concat([returns[1:], values[-1:]], axis=0) if step else values[1:]
        returns = rewards + discounts * tf.where(goes_on > 0, later, values[1:])
    return returns


@dataclass(frozen=True)
class Priorities:
    """How sequences of a table are weighed, and what their priorities are."""

    table: str
    #: How much of the bias of drawing by priorities is corrected at first; all after so many steps.
    beta: float
    beta_updates: int
    #: The largest error's part of a priority; the rest is that of their mean.
    largest: float
    least: float

    def weights(self, batch: GraphRollouts, updates: tf.Tensor) -> tf.Tensor:
        """Return how much each sequence counts, [K]; Schaul et al. 2016, section 3.4."""
        progress = tf.minimum(updates / self.beta_updates, 1.0)
        beta = self.beta + (1.0 - self.beta) * progress
        return batch.extras[LIKELIHOOD][0] ** -beta

    def of(self, errors: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
        """Return ``eta max |error| + (1 - eta) mean |error|`` [K] of errors [T, K]."""
        sizes = valid * tf.abs(errors)
        mean = tf.reduce_sum(sizes, axis=0) / tf.maximum(tf.reduce_sum(valid, axis=0), 1.0)
        largest = tf.reduce_max(sizes, axis=0)
        return self.largest * largest + (1.0 - self.largest) * mean + self.least


class RecurrentQLearning(GraphLearner):
    """Updates a recurrent network and its target.

    The target follows ``target_rate`` of its way at every ``target_every``-th update. Gradients
    longer than ``gradient_norm`` are scaled down. ``action_mask`` names the observation that says
    which actions are allowed. Without ``priorities`` sequences are drawn, and count, alike.
    """

    def __init__(
        self,
        variables: Variables,
        inputs: Mapping[str, Input],
        *,
        network: Network,
        values: ActionValues,
        action_mask: str | None,
        discount: float,
        n_step: int,
        rescales: bool,
        gradient_norm: float | None,
        target_rate: float,
        target_every: int,
        priorities: Priorities | None,
    ) -> None:
        super().__init__(variables, inputs)
        self._network, self._values = network, GraphActionValues(values)
        self._actions, self._mask = values.actions, action_mask
        self._discount, self._n_step, self._rescales = discount, n_step, rescales
        self._gradient_norm = gradient_norm
        self._target_rate, self._target_every = target_rate, target_every
        self._priorities = priorities

    def update(self, *batches: GraphRollouts) -> tuple[Terms, Mapping[str, tf.Tensor]]:
        """See GraphLearner: one step down the mean square of the errors."""
        (batch,) = batches
        following = self._values_of(self.variables[TARGET], batch)
        weights = tf.ones_like(batch.valid[0])
        if self._priorities is not None:
            weights = self._priorities.weights(batch, self.variables.steps(POLICY_VARIABLE))
        with tf.GradientTape() as tape:
            vector = tf.identity(self.variables[POLICY_VARIABLE])
            tape.watch(vector)
            values = self._values_of(vector, batch)
            targets = tf.stop_gradient(self._targets(values, following, batch))
            taken = tf.one_hot(batch.actions, self._actions)
            errors = tf.reduce_sum(taken * values[:-1], axis=-1) - targets
            count = tf.maximum(tf.reduce_sum(batch.valid), 1.0)
            loss = 0.5 * tf.reduce_sum(weights * batch.valid * tf.square(errors)) / count
        gradient, norm = scaled_down(tape.gradient(loss, vector), self._gradient_norm)
        self.variables.descend(POLICY_VARIABLE, gradient)
        self._follow()
        value = tf.reduce_sum(batch.valid * self._unscaled(targets)) / count
        found = (
            {}
            if self._priorities is None
            else {self._priorities.table: self._priorities.of(errors, batch.valid)}
        )
        return {"loss": loss, "value": value, "gradient norm": norm}, found

    def _targets(self, values: tf.Tensor, following: tf.Tensor, batch: GraphRollouts) -> tf.Tensor:
        """Return what the values [T, K] of the actions taken should be: double Q-learning."""
        best = tf.one_hot(tf.argmax(values, axis=-1), self._actions)
        behind = self._unscaled(tf.reduce_sum(best * following, axis=-1))
        discounts = self._discount * (1.0 - batch.terminated)
        returns = returns_over(self._n_step, batch.rewards, discounts, batch.valid, behind)
        return rescaled(returns) if self._rescales else returns

    def _unscaled(self, values: tf.Tensor) -> tf.Tensor:
        return unscaled(values) if self._rescales else values

    def _follow(self) -> None:
        number = self.variables.steps(POLICY_VARIABLE)
        is_due = tf.equal(tf.math.floormod(number, float(self._target_every)), 0.0)
        self.variables.follow(tf.where(is_due, self._target_rate, 0.0))

    def _values_of(self, vector: tf.Tensor, batch: GraphRollouts) -> tf.Tensor:
        """Return the values of all actions, [T + 1, K, A]."""
        by_head = unrolled(self._network, vector, batch)
        outputs = tf.concat([by_head[head.name] for head in self._network.heads], axis=-1)
        shape = tf.shape(outputs)
        rows = tf.reshape(outputs, [-1, outputs.shape[-1]])
        if self._mask is not None:
            allowed = tf.reshape(batch.observations[self._mask], [-1, self._actions])
            rows = self._values.masked(rows, allowed)
        return tf.reshape(self._values.values(rows), [shape[0], shape[1], self._actions])

"""The variables of DQN, and one update of them as one graph."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector
from relaax.learning.distributions import ActionValues
from relaax.learning.distributions.action_values_tf import GraphActionValues
from relaax.learning.networks import Network
from relaax.learning.networks.outputs_tf import outputs_of
from relaax.learning.off_policy import TransitionBatch
from relaax.learning.off_policy.variables_tf import Variables

from .losses_tf import cross_entropy, divergence, huber, projected

FloatArray = npt.NDArray[np.float32]

#: The network, and the target that follows it.
NETWORK, TARGET = "network", "target"


@dataclass(frozen=True)
class DqnRates:
    """How fast what is learnt, and how often."""

    learning_rate: float = 1e-3
    #: The longest gradient.
    gradient_norm: float | None = 10.0
    #: Part of the way that the target follows.
    target: float = 1.0
    #: Updates from one such move to the next.
    target_every: int = 500
    #: Choose the action behind a step with the network.
    is_double: bool = True


class DqnUpdate:
    """The network, its target, and what Adam remembers. Updates draw nothing."""

    def __init__(
        self, network: Network, values: ActionValues, initial: FloatVector, rates: DqnRates
    ) -> None:
        self._network = network
        self._values = values
        self._graph_values = GraphActionValues(values)
        self._rates = rates
        self._variables = Variables(
            {NETWORK: initial, TARGET: initial}, {NETWORK: rates.learning_rate}
        )
        self._graph = tf.function(
            self._update, jit_compile=not network.has_convolutions, autograph=False
        )

    @property
    def policy(self) -> FloatVector:
        """The network's parameters, float32 [size]."""
        vector: FloatVector = self._variables[NETWORK].numpy()
        return vector

    def __call__(self, batch: TransitionBatch, number: int) -> tuple[FloatArray, dict[str, float]]:
        """Make one update; return the error of each transition [B], and terms.

        Of distributions the error is their divergence.
        """
        moves_target = number % self._rates.target_every == 0
        errors, terms = self._graph(moves_target, *vars(batch).values())
        return errors.numpy(), {name: float(term) for name, term in terms.items()}

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all variables by name."""
        return self._variables.state()

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from ``state``."""
        self._variables.restore(state)

    def _update(
        self, moves_target: bool, *columns: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        batch = TransitionBatch(*columns)
        learn = self._losses if self._values.atoms == 1 else self._distributional_losses
        behind = self._behind(batch)
        with tf.GradientTape() as tape:
            vector = tf.identity(self._variables[NETWORK])
            tape.watch(vector)
            outputs = self._outputs(vector, batch.observations)
            losses, errors = learn(batch, outputs, behind)
            loss = tf.reduce_mean(losses * batch.weights)
        gradient = tape.gradient(loss, vector)
        norm = tf.norm(gradient)
        if self._rates.gradient_norm is not None:
            gradient *= tf.minimum(1.0, self._rates.gradient_norm / tf.maximum(norm, 1e-12))
        self._variables.descend(NETWORK, gradient)
        if moves_target:
            self._variables.follow(TARGET, NETWORK, self._rates.target)
        value = tf.reduce_mean(tf.reduce_max(self._graph_values.values(outputs), axis=1))
        return errors, {"loss": loss, "value": value, "gradient norm": norm}

    def _behind(self, batch: TransitionBatch) -> tf.Tensor:
        """Return the outputs [B, A, atoms] of the best actions behind a step; 0 for others."""
        outputs = self._outputs(self._variables[TARGET], batch.next_observations)
        chosen_by = outputs
        if self._rates.is_double:
            chosen_by = self._outputs(self._variables[NETWORK], batch.next_observations)
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
        """Return what all heads put out, [B, N]."""
        outputs = outputs_of(self._network, vector, observations)
        return tf.concat([outputs[head.name] for head in self._network.heads], axis=1)

"""How values are fitted to the returns of a batch, without moving the policy's layers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import tensorflow as tf

from relaax.learning.gradients_tf import GraphRollouts
from relaax.learning.losses_tf import value_loss
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.parameters_tf import unrolled
from relaax.learning.on_policy import VALUE
from relaax.learning.variables_tf import Variables

from .lbfgs_tf import minimized
from .slopes_tf import value_and_slope

#: The price of the square of the values' parameters, as in modular_rl's regression.
WEIGHT_DECAY = 1e-3


class ValueFit(ABC):
    """Moves the values' own parameters, and no others: the policy may share layers below them."""

    def __init__(self, network: Network, variables: Variables) -> None:
        self._network, self._variables = network, variables
        self._of_value = tf.constant(
            np.concatenate(
                [
                    np.full(spec.size, spec.name.startswith(f"{VALUE}/"), np.float32)
                    for spec in network.manifest.specs
                ]
            )
        )

    @abstractmethod
    def fit(self, batch: GraphRollouts, returns: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
        """Move the values, ``before`` [T, K], towards the returns [T, K]; return the loss."""

    def _loss(self, parameters: tf.Tensor, batch: GraphRollouts, targets: tf.Tensor) -> tf.Tensor:
        """Return half the mean squared error."""
        outputs = unrolled(self._network, parameters, batch, [VALUE])[VALUE]
        total = value_loss(outputs[:-1, :, 0], targets, batch.valid)
        return total / tf.maximum(tf.reduce_sum(batch.valid), 1.0)


class AdamFit(ValueFit):
    """``passes`` over the rollouts of a batch, in ``minibatches`` at random."""

    def __init__(
        self,
        network: Network,
        variables: Variables,
        *,
        passes: int,
        minibatches: int,
        seed: int | None,
    ) -> None:
        super().__init__(network, variables)
        self._passes, self._minibatches = passes, minibatches
        self._random = tf.random.Generator.from_seed(np.random.default_rng(seed).integers(2**31))

    def fit(self, batch: GraphRollouts, returns: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
        """See ValueFit; the loss of the last minibatch is returned."""
        count, parts = returns.shape[1], self._minibatches
        size = max(count // parts, 1)

        def step(index: tf.Tensor, order: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, ...]:
            place = index % parts
            order = tf.cond(place == 0, lambda: self._shuffled(count), lambda: order)
            some = tf.gather(order, (place * size + tf.range(size)) % count)
            piece, targets = chosen(batch, some), tf.gather(returns, some, axis=1)
            error, gradient = value_and_slope(
                lambda parameters: self._loss(parameters, piece, targets),
                tf.identity(self._variables[POLICY]),
            )
            self._variables.descend(POLICY, self._of_value * gradient)
            return index + 1, order, error

        first = tf.constant(0), tf.range(count), tf.constant(0.0)
        loops = tf.while_loop(lambda index, *_: index < self._passes * parts, step, first)
        return loops[2]

    def _shuffled(self, count: int) -> tf.Tensor:
        return tf.argsort(self._random.uniform([count]))


class LbfgsFit(ValueFit):
    """A regression of the whole batch, in ``iterations`` of L-BFGS, as in modular_rl.

    The returns count by the part ``mixing`` of the targets, and the values before by the rest, so
    that no batch is fitted too well.
    """

    def __init__(
        self, network: Network, variables: Variables, *, mixing: float, iterations: int
    ) -> None:
        super().__init__(network, variables)
        self._mixing, self._iterations = mixing, iterations

    def fit(self, batch: GraphRollouts, returns: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
        """See ValueFit; the returns, not the mixed targets, make the loss."""
        variable = self._variables[POLICY]
        start = tf.identity(variable)
        targets = self._mixing * returns + (1.0 - self._mixing) * before

        def regression(parameters: tf.Tensor) -> tf.Tensor:
            parameters = tf.where(self._of_value > 0, parameters, tf.stop_gradient(start))
            decay = WEIGHT_DECAY * tf.reduce_sum(tf.square(self._of_value * parameters))
            return 2.0 * self._loss(parameters, batch, targets) + decay

        variable.assign(minimized(regression, start, self._iterations))
        return self._loss(tf.identity(variable), batch, returns)


def chosen(batch: GraphRollouts, some: tf.Tensor) -> GraphRollouts:
    """Return the rollouts of a batch at places ``some`` [N]."""

    def part(column: Any) -> Any:
        if isinstance(column, Mapping):
            return {name: part(inner) for name, inner in column.items()}
        return tf.gather(column, some, axis=1)

    return GraphRollouts(*(part(getattr(batch, field.name)) for field in fields(batch)))

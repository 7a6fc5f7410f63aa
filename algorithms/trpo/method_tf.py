"""Trust region policy optimization (Schulman et al. 2015, https://arxiv.org/abs/1502.05477).

With generalised advantages (Schulman et al. 2016, https://arxiv.org/abs/1506.02438). Equations are
those of the first paper.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, cast

import numpy as np
import tensorflow as tf

from relaax.algorithm_base import Input
from relaax.learning.distributions.base import GraphDistribution, Maskable
from relaax.learning.gradients_tf import GraphRollouts, Terms
from relaax.learning.graph_learner_tf import GraphLearner
from relaax.learning.losses_tf import MOST_LOG_RATIO, value_loss
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.parameters_tf import unrolled
from relaax.learning.on_policy import VALUE
from relaax.learning.returns_tf import n_step_targets, normalized
from relaax.learning.rollouts import LOG_PROBABILITY
from relaax.learning.variables_tf import Variables

#: A function of all parameters, float32 [size].
OfParameters = Callable[[tf.Tensor], tf.Tensor]

#: Conjugate gradients end where the square of what is left is smaller.
LEAST_REST = 1e-10


class Found(NamedTuple):
    """Parameters that the line search has found, and how far they are along the longest step."""

    parameters: tf.Tensor
    #: 0 where no step was good enough: the parameters are those before.
    part: tf.Tensor


class Trpo(GraphLearner):
    """Moves the policy along the natural gradient as far as the trust region goes; fits the values.

    ``shrinking``: the parts of the longest step that are tried, in this order. The values' own
    parameters alone are moved by Adam, ``value_passes`` over ``value_minibatches`` of a batch.
    """

    def __init__(
        self,
        variables: Variables,
        inputs: Mapping[str, Input],
        *,
        network: Network,
        distribution: GraphDistribution,
        action_mask: str | None,
        discount: float,
        trace_decay: float,
        kl_target: float,
        conjugate_steps: int,
        damping: float,
        shrinking: Sequence[float],
        value_passes: int,
        value_minibatches: int,
        seed: int | None,
    ) -> None:
        super().__init__(variables, inputs)
        self.network, self._distribution, self._mask = network, distribution, action_mask
        self._discount, self._trace_decay = discount, trace_decay
        self._kl_target, self._damping = kl_target, damping
        self._conjugate_steps, self._shrinking = conjugate_steps, shrinking
        self._value_passes, self._value_minibatches = value_passes, value_minibatches
        self._random = tf.random.Generator.from_seed(np.random.default_rng(seed).integers(2**31))
        self._of_value = tf.constant(
            np.concatenate(
                [
                    np.full(spec.size, spec.name.startswith(f"{VALUE}/"), np.float32)
                    for spec in network.manifest.specs
                ]
            )
        )

    def update(self, *batches: GraphRollouts) -> tuple[Terms, Mapping[str, tf.Tensor]]:
        """Section 6: advantages, the direction, the longest step along it, and the line search."""
        (batch,) = batches
        variable = self.variables[POLICY]
        old = tf.identity(variable)
        outputs = unrolled(self.network, old, batch)
        before, values = self._allowed(outputs[POLICY][:-1], batch), outputs[VALUE][..., 0]
        returns, advantages = n_step_targets(
            batch.rewards, batch.terminated, batch.valid, values, self._discount, self._trace_decay
        )
        advantages = normalized(advantages, batch.on_policy)
        count, own_count = (
            tf.maximum(tf.reduce_sum(steps), 1.0) for steps in (batch.valid, batch.on_policy)
        )

        def surrogate(parameters: tf.Tensor) -> tf.Tensor:  # equation (14), L
            chosen = self._distribution.log_likelihood(
                self._policy(parameters, batch), batch.actions
            )
            ratios = tf.exp(tf.minimum(chosen - batch.extras[LOG_PROBABILITY], MOST_LOG_RATIO))
            return tf.reduce_sum(batch.on_policy * ratios * advantages) / own_count

        def divergence(parameters: tf.Tensor) -> tf.Tensor:  # equation (14), the constraint
            kl = self._distribution.kl(before, self._policy(parameters, batch))
            return tf.reduce_sum(batch.valid * kl) / count

        def fisher(direction: tf.Tensor) -> tf.Tensor:  # appendix C
            along = slope(lambda at: dot(slope(divergence, at), direction), old)
            return along + self._damping * direction

        least, gradient = value_and_slope(surrogate, old)
        direction = conjugate_gradients(fisher, gradient, self._conjugate_steps)
        longest = direction * tf.sqrt(
            2.0 * self._kl_target / tf.maximum(dot(direction, fisher(direction)), 1e-12)
        )
        found = self._search(old, longest, least, surrogate, divergence)
        variable.assign(found.parameters)
        loss = self._fit_values(batch, returns)
        entropy = self._distribution.entropy(before)
        terms = {
            "surrogate": surrogate(found.parameters) - least,
            "kl": divergence(found.parameters),
            "step": found.part,
            "entropy": tf.reduce_sum(batch.valid * entropy) / count,
            "value loss": loss,
        }
        return terms, {}

    def _search(
        self,
        old: tf.Tensor,
        longest: tf.Tensor,
        least: tf.Tensor,
        surrogate: OfParameters,
        divergence: OfParameters,
    ) -> Found:
        """Return the first part of the step that helps and stays in the region: appendix C.

        It helps where the surrogate is more than ``least``, that of the parameters before.
        """
        shrinking = tf.constant(self._shrinking)

        def is_good(part: tf.Tensor) -> tf.Tensor:
            parameters = old + part * longest
            return (surrogate(parameters) > least) & (divergence(parameters) <= self._kl_target)

        def goes_on(tried: tf.Tensor, is_found: tf.Tensor) -> tf.Tensor:
            return ~is_found & (tried < len(self._shrinking))

        def next_part(tried: tf.Tensor, is_found: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return tried + 1, is_good(shrinking[tried])

        tried, is_found = tf.while_loop(goes_on, next_part, (tf.constant(0), tf.constant(False)))
        part = tf.where(is_found, shrinking[tf.maximum(tried - 1, 0)], 0.0)
        return Found(old + part * longest, part)

    def _fit_values(self, batch: GraphRollouts, returns: tf.Tensor) -> tf.Tensor:
        """Move the values towards the returns; return the mean loss of the last minibatch."""
        count, parts = returns.shape[1], self._value_minibatches
        size = max(count // parts, 1)

        def step(index: tf.Tensor, order: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, ...]:
            place = index % parts
            order = tf.cond(place == 0, lambda: self._shuffled(count), lambda: order)
            some = tf.gather(order, (place * size + tf.range(size)) % count)
            piece, targets = chosen(batch, some), tf.gather(returns, some, axis=1)

            def loss(parameters: tf.Tensor) -> tf.Tensor:
                outputs = unrolled(self.network, parameters, piece, [VALUE])[VALUE]
                total = value_loss(outputs[:-1, :, 0], targets, piece.valid)
                return total / tf.maximum(tf.reduce_sum(piece.valid), 1.0)

            error, gradient = value_and_slope(loss, tf.identity(self.variables[POLICY]))
            self.variables.descend(POLICY, self._of_value * gradient)
            return index + 1, order, error

        first = tf.constant(0), tf.range(count), tf.constant(0.0)
        loops = tf.while_loop(lambda index, *_: index < self._value_passes * parts, step, first)
        return loops[2]

    def _shuffled(self, count: int) -> tf.Tensor:
        return tf.argsort(self._random.uniform([count]))

    def _policy(self, parameters: tf.Tensor, batch: GraphRollouts) -> tf.Tensor:
        """Return the policy's outputs [T, K, N]."""
        outputs = unrolled(self.network, parameters, batch, [POLICY])
        return self._allowed(outputs[POLICY][:-1], batch)

    def _allowed(self, policy: tf.Tensor, batch: GraphRollouts) -> tf.Tensor:
        """Return the policy's outputs without masked actions."""
        if self._mask is None:
            return policy
        return cast(Maskable, self._distribution).masked(policy, batch.allowed(self._mask))


def chosen(batch: GraphRollouts, some: tf.Tensor) -> GraphRollouts:
    """Return the rollouts of a batch at places ``some`` [N]."""

    def part(column: Any) -> Any:
        if isinstance(column, Mapping):
            return {name: part(inner) for name, inner in column.items()}
        return tf.gather(column, some, axis=1)

    return GraphRollouts(*(part(getattr(batch, field.name)) for field in fields(batch)))


def conjugate_gradients(
    product: Callable[[tf.Tensor], tf.Tensor], right: tf.Tensor, steps: int
) -> tf.Tensor:
    """Return x of ``product(x) = right`` [size], nearly, for a positive definite product.

    Hestenes and Stiefel 1952; it ends early where nothing is left to be corrected.
    """

    def step(
        index: tf.Tensor, x: tf.Tensor, rest: tf.Tensor, towards: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        curved, length = product(towards), dot(rest, rest)
        size = length / dot(towards, curved)
        left = rest - size * curved
        return index + 1, x + size * towards, left, left + dot(left, left) / length * towards

    first = tf.constant(0), tf.zeros_like(right), right, right
    return tf.while_loop(
        lambda index, x, rest, towards: (index < steps) & (dot(rest, rest) > LEAST_REST),
        step,
        first,
    )[1]


def value_and_slope(function: OfParameters, at: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the value and the gradient [size]: 0 for parameters without an effect."""
    with tf.GradientTape() as tape:
        tape.watch(at)
        value = function(at)
    gradient = tape.gradient(value, at, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return value, gradient


def slope(function: OfParameters, at: tf.Tensor) -> tf.Tensor:
    """Return the gradient alone."""
    return value_and_slope(function, at)[1]


def dot(one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """Return the scalar product of two vectors."""
    return tf.tensordot(one, other, 1)

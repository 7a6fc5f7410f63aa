"""Trust region policy optimization (Schulman et al. 2015, https://arxiv.org/abs/1502.05477).

With generalised advantages (Schulman et al. 2016, https://arxiv.org/abs/1506.02438). Equations are
those of the first paper.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import Input
from relaax.learning.distributions.base import GraphDistribution, Maskable
from relaax.learning.gradients_tf import GraphRollouts, Terms
from relaax.learning.graph_learner_tf import GraphLearner
from relaax.learning.losses_tf import MOST_LOG_RATIO
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.parameters_tf import unrolled
from relaax.learning.on_policy import VALUE
from relaax.learning.returns_tf import n_step_targets, normalized
from relaax.learning.rollouts import LOG_PROBABILITY
from relaax.learning.variables_tf import Variables

from .slopes_tf import OfParameters, dot, slope, value_and_slope
from .values_tf import ValueFit

#: Conjugate gradients end where the square of what is left is smaller.
LEAST_REST = 1e-10


class Found(NamedTuple):
    """Parameters that the policy has moved to, and numbers about the way there, by name."""

    parameters: tf.Tensor
    terms: Terms


class PolicyStep(ABC):
    """Moves the policy by one batch."""

    #: Variables that are in checkpoints, by name.
    variables: Mapping[str, tf.Variable] = {}

    @abstractmethod
    def moved(self, old: tf.Tensor, surrogate: OfParameters, divergence: OfParameters) -> Found:
        """Return parameters [size] near ``old`` whose ``surrogate`` is larger.

        ``divergence`` is the mean KL divergence of the policy with ``old`` from another one.
        """


class Trpo(GraphLearner):
    """Moves the policy by a step towards a larger surrogate; then fits the values."""

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
        policy_step: PolicyStep,
        value_fit: ValueFit,
    ) -> None:
        super().__init__(variables, inputs)
        self.network, self._distribution, self._mask = network, distribution, action_mask
        self._discount, self._trace_decay = discount, trace_decay
        self._policy_step, self._value_fit = policy_step, value_fit

    def update(self, *batches: GraphRollouts) -> tuple[Terms, Mapping[str, tf.Tensor]]:
        """Section 6: advantages, the surrogate and its constraint, and a step of the policy."""
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

        found = self._policy_step.moved(old, surrogate, divergence)
        variable.assign(found.parameters)
        loss = self._value_fit.fit(batch, returns, values[:-1])
        entropy = self._distribution.entropy(before)
        terms = {
            "surrogate": surrogate(found.parameters) - surrogate(old),
            "kl": divergence(found.parameters),
            "entropy": tf.reduce_sum(batch.valid * entropy) / count,
            "value loss": loss,
            **found.terms,
        }
        return terms, {}

    def state(self) -> Mapping[str, npt.NDArray[Any]]:
        """See Learner."""
        own = {name: variable.numpy() for name, variable in self._policy_step.variables.items()}
        return {**super().state(), **own}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """See Learner; the state of another kind of step is ignored."""
        super().restore(state)
        for name, variable in self._policy_step.variables.items():
            if name in state:
                variable.assign(state[name])

    def _policy(self, parameters: tf.Tensor, batch: GraphRollouts) -> tf.Tensor:
        """Return the policy's outputs [T, K, N]."""
        outputs = unrolled(self.network, parameters, batch, [POLICY])
        return self._allowed(outputs[POLICY][:-1], batch)

    def _allowed(self, policy: tf.Tensor, batch: GraphRollouts) -> tf.Tensor:
        """Return the policy's outputs without masked actions."""
        if self._mask is None:
            return policy
        return cast(Maskable, self._distribution).masked(policy, batch.allowed(self._mask))


@dataclass(frozen=True)
class NaturalGradient(PolicyStep):
    """The natural gradient as far as the trust region goes: appendix C."""

    kl_target: float
    conjugate_steps: int
    damping: float
    #: The parts of the longest step that are tried, in this order.
    shrinking: Sequence[float]

    def moved(self, old: tf.Tensor, surrogate: OfParameters, divergence: OfParameters) -> Found:
        """Find the direction, the longest step along it, and by the line search the part taken.

        The term ``step`` is that part: 0 where no part was good enough.
        """

        def fisher(direction: tf.Tensor) -> tf.Tensor:  # appendix C.1
            along = slope(lambda at: dot(slope(divergence, at), direction), old)
            return along + self.damping * direction

        least, gradient = value_and_slope(surrogate, old)
        direction = conjugate_gradients(fisher, gradient, self.conjugate_steps)
        longest = direction * tf.sqrt(
            2.0 * self.kl_target / tf.maximum(dot(direction, fisher(direction)), 1e-12)
        )

        def is_good(part: tf.Tensor) -> tf.Tensor:
            parameters = old + part * longest
            return (surrogate(parameters) > least) & (divergence(parameters) <= self.kl_target)

        part = first_good(self.shrinking, is_good)
        return Found(old + part * longest, {"step": part})


def first_good(parts: Sequence[float], is_good: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
    """Return the first of ``parts`` that is good, or 0."""
    tensor = tf.constant(parts)

    def goes_on(tried: tf.Tensor, is_found: tf.Tensor) -> tf.Tensor:
        return ~is_found & (tried < len(parts))

    def next_part(tried: tf.Tensor, is_found: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tried + 1, is_good(tensor[tried])

    tried, is_found = tf.while_loop(goes_on, next_part, (tf.constant(0), tf.constant(False)))
    return tf.where(is_found, tensor[tf.maximum(tried - 1, 0)], 0.0)


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

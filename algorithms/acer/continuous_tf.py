"""ACER for continuous actions (Wang et al. 2017, https://arxiv.org/abs/1611.01224, section 5).

Equations are those of the paper; algorithm 3 is the whole. The statistics of the policy's
distribution are its means, and the network's outputs that make its standard deviations.
"""

from collections.abc import Mapping
from math import prod

import numpy as np
import tensorflow as tf

from relaax.learning.distributions.base import GraphDistribution
from relaax.learning.gradients_tf import GraphRollouts, Terms
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.parameters_tf import unrolled
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.off_policy.update_tf import values_of
from relaax.learning.on_policy import VALUE
from relaax.learning.returns_tf import retrace_targets
from relaax.learning.rollouts import DISTRIBUTION

from .config import ADVANTAGES
from .method_tf import (
    AVERAGE,
    Actions,
    Numbers,
    correction_of,
    mean,
    ratios_of,
    terms_of,
    within_region,
)


class ContinuousActions(Actions):
    """Algorithm 3: a policy with the value of a state, and a network of advantages.

    ``samples`` is the paper's n. Without ``moves_sigma`` the standard deviations stay as they are.
    """

    def __init__(
        self,
        network: Network,
        advantages: Network,
        distribution: GraphDistribution,
        numbers: Numbers,
        *,
        samples: int,
        moves_sigma: bool,
        seed: int | None,
    ) -> None:
        self._network, self._advantages, self._distribution = network, advantages, distribution
        self._numbers, self._samples, self._moves_sigma = numbers, samples, moves_sigma
        self._random = tf.random.Generator.from_seed(np.random.default_rng(seed).integers(2**31))

    def loss(self, batch: GraphRollouts, at: Mapping[str, tf.Tensor]) -> tuple[tf.Tensor, Terms]:
        """See Actions."""
        numbers, outputs = self._numbers, unrolled(self._network, at[POLICY_VARIABLE], batch)
        statistics, values = outputs[POLICY][:-1], outputs[VALUE][..., 0]
        average = unrolled(self._network, at[AVERAGE], batch, [POLICY])[POLICY][:-1]
        fixed, value = tf.stop_gradient(statistics), tf.stop_gradient(values[:-1])

        drawn, *others = self._drawn(fixed)
        ratio, drawn_ratio = (
            self._ratios(fixed, actions, batch) for actions in (batch.actions, drawn)
        )
        chosen, of_drawn, *of_others = self._advantages_of(
            at[ADVANTAGES], batch, [batch.actions, drawn, *others]
        )
        chosen_values = dueling(values[:-1], chosen, of_others)
        drawn_values = tf.stop_gradient(dueling(values[:-1], of_drawn, of_others))
        rows = (
            batch.rewards,
            batch.terminated,
            tf.stop_gradient(values),
            tf.stop_gradient(chosen_values),
        )
        trace = tf.minimum(1.0, ratio ** (1.0 / prod(batch.actions.shape[2:])))
        targets = retrace_targets(*rows, batch.on_policy * trace, numbers.discount)
        whole = retrace_targets(*rows, batch.on_policy, numbers.discount)  # Q^opc: appendix B

        with tf.GradientTape(persistent=True) as tape:
            tape.watch(fixed)
            gain = self._gain(
                fixed, batch.actions, tf.minimum(numbers.largest_weight, ratio) * (whole - value)
            )
            gain += self._gain(
                fixed,
                drawn,
                correction_of(drawn_ratio, numbers.largest_weight) * (drawn_values - value),
            )
            gain += numbers.entropy_beta * self._distribution.entropy(fixed)
            divergence = self._distribution.kl(average, fixed)
        gradient, towards = (
            self._moved(tape.gradient(target, fixed)) for target in (gain, divergence)
        )
        direction = within_region(gradient, towards, numbers.trust_region)

        policy_gain = tf.reduce_sum(direction * statistics, axis=-1)
        errors = targets - tf.stop_gradient(chosen_values)
        value_loss = 0.5 * tf.square(targets - chosen_values)
        value_loss += 0.5 * tf.square(tf.minimum(1.0, ratio) * errors + value - values[:-1])  # (14)
        loss = mean(numbers.value_loss_weight * value_loss - policy_gain, batch.on_policy)
        entropy = self._distribution.entropy(fixed)
        return loss, terms_of(batch, gradient, direction, value_loss, value, ratio, entropy)

    def _gain(self, fixed: tf.Tensor, actions: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Return a part of the policy's gain [T, K], whose gradient is one of equation (16)."""
        return tf.stop_gradient(weights) * self._distribution.log_likelihood(fixed, actions)

    def _drawn(self, fixed: tf.Tensor) -> list[tf.Tensor]:
        """Return actions of the policy in each state, [T, K, ...]: a', and the u_i."""
        shape = [1 + self._samples, *fixed.shape[:2], fixed.shape[2] // 2]
        actions: list[tf.Tensor] = tf.unstack(
            self._distribution.choose(fixed, self._random.normal(shape))
        )
        return actions

    def _ratios(self, fixed: tf.Tensor, actions: tf.Tensor, batch: GraphRollouts) -> tf.Tensor:
        """Return rho of actions in each state, [T, K]."""
        now = self._distribution.log_likelihood(fixed, actions)
        return ratios_of(
            now, self._distribution.log_likelihood(batch.extras[DISTRIBUTION], actions)
        )

    def _advantages_of(
        self, vector: tf.Tensor, batch: GraphRollouts, actions: list[tf.Tensor]
    ) -> list[tf.Tensor]:
        """Return the network's outputs [T, K] for each of some actions in all states."""
        joined = tf.stack(actions)
        count, steps, rollouts = joined.shape[:3]

        def repeated(states: tf.Tensor) -> tf.Tensor:
            flat = tf.reshape(states[:-1], [steps * rollouts, *states.shape[2:]])
            return tf.tile(flat, [count, *([1] * (len(flat.shape) - 1))])

        states = tf.nest.map_structure(repeated, batch.observations)
        flat = tf.reshape(joined, [-1, *joined.shape[3:]])
        found = values_of(self._advantages, vector, 1, states, flat)
        outputs: list[tf.Tensor] = tf.unstack(tf.reshape(found, [count, steps, rollouts]))
        return outputs

    def _moved(self, gradient: tf.Tensor) -> tf.Tensor:
        """Return the gradient [T, K, 2 A] without standard deviations that stay as they are."""
        if self._moves_sigma:
            return gradient
        means, sigmas = tf.split(gradient, 2, axis=-1)
        return tf.concat([means, tf.zeros_like(sigmas)], axis=-1)


def dueling(values: tf.Tensor, advantage: tf.Tensor, of_policy: list[tf.Tensor]) -> tf.Tensor:
    """Return stochastic values of actions, [T, K]: equation (13).

    values: V(x); advantage: A(x, a); of_policy: A(x, u_i) of actions u_i of the policy; [T, K].
    """
    return values + advantage - tf.add_n(of_policy) / len(of_policy)

"""Soft actor-critic.

Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications"
(https://arxiv.org/abs/1812.05905), algorithm 1. At each update the critics learn ``soft_target``,
the policy the smaller of their values and its entropy, and the temperature the entropy that is
asked for; the target critics follow. All gradients are those at the parameters before the update.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from relaax.learning.distributions.squashed_gaussian_tf import GraphSquashedGaussian
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.parameters_tf import outputs_of
from relaax.learning.off_policy import TransitionBatch
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.off_policy.critics import CRITICS
from relaax.learning.off_policy.update_tf import GraphUpdate, Losses, values_of
from relaax.learning.variables_tf import Variables

from .config import LOG_TEMPERATURE

#: The followers of the critics.
TARGETS = "targets"


def soft_target(
    rewards: tf.Tensor,
    discounts: tf.Tensor,
    next_values: tf.Tensor,
    next_log_likelihoods: tf.Tensor,
    temperature: tf.Tensor,
) -> tf.Tensor:
    """Return the target of both critics, [B]: equations (3) and (6), with the smaller next value.

    discounts: [B], gamma to the number of steps, and 0 behind the end of an episode.
    next_values: [2, B], of the target critics. next_log_likelihoods: [B].
    """
    soft_values = tf.reduce_min(next_values, axis=0) - temperature * next_log_likelihoods
    return rewards + discounts * soft_values


def critic_loss(values: tf.Tensor, targets: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Return the loss of both critics, equation (5): values [2, B], targets [B], weights [B]."""
    errors = tf.square(values - targets[tf.newaxis])
    return 0.5 * tf.reduce_mean(tf.reduce_sum(errors, axis=0) * weights)


def policy_loss(values: tf.Tensor, log_likelihoods: tf.Tensor, temperature: tf.Tensor) -> tf.Tensor:
    """Return the loss of the policy, equation (7): values [2, B] and log-likelihoods [B]."""
    return tf.reduce_mean(temperature * log_likelihoods - tf.reduce_min(values, axis=0))


def temperature_loss(
    log_temperature: tf.Tensor, log_likelihoods: tf.Tensor, target_entropy: float
) -> tf.Tensor:
    """Return the loss of the logarithm of the temperature, equation (18), whose slope it has."""
    distance = tf.stop_gradient(tf.reduce_mean(log_likelihoods) + target_entropy)
    return -tf.reduce_sum(log_temperature) * distance


class SoftActorCritic(GraphUpdate):
    """Updates the policy, twin critics with their targets, and the temperature.

    The noise of a batch is standard normal, [2, B, A]: of the actions now, and of the next ones.
    """

    def __init__(
        self,
        policy: Network,
        critic: Network,
        distribution: GraphSquashedGaussian,
        variables: Variables,
        target_rate: float,
        target_entropy: float,
    ) -> None:
        super().__init__(variables, target_rate)
        self._policy_network, self._critic_network = policy, critic
        self._distribution = distribution
        self._target_entropy = target_entropy

    def losses(
        self, batch: TransitionBatch, at: Mapping[str, tf.Tensor], names: tuple[str, ...]
    ) -> Losses:
        """See GraphUpdate."""
        temperature = tf.exp(at[LOG_TEMPERATURE][0])
        targets = self._soft_targets(batch, at, temperature)
        values = self._values(at[CRITICS], batch.observations, batch.actions)
        actions, likelihoods = self._choose(at[POLICY_VARIABLE], batch.observations, batch.noise[0])
        chosen = self._values(at[CRITICS], batch.observations, actions)
        losses = {
            CRITICS: critic_loss(values, targets, batch.weights),
            POLICY_VARIABLE: policy_loss(chosen, likelihoods, temperature),
            LOG_TEMPERATURE: temperature_loss(
                at[LOG_TEMPERATURE], likelihoods, self._target_entropy
            ),
        }
        terms = {
            "critic loss": losses[CRITICS],
            "value": tf.reduce_mean(values),
            "policy loss": losses[POLICY_VARIABLE],
            "entropy": -tf.reduce_mean(likelihoods),
            "temperature": temperature,
        }
        return Losses(losses, tf.reduce_mean(tf.abs(values - targets), axis=0), terms)

    def _soft_targets(
        self, batch: TransitionBatch, at: Mapping[str, tf.Tensor], temperature: tf.Tensor
    ) -> tf.Tensor:
        following = batch.next_observations
        actions, likelihoods = self._choose(at[POLICY_VARIABLE], following, batch.noise[1])
        values = self._values(at[TARGETS], following, actions)
        return soft_target(batch.rewards, batch.discounts, values, likelihoods, temperature)

    def _choose(
        self, policy: tf.Tensor, observations: Any, noise: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        outputs = outputs_of(self._policy_network, policy, observations)[POLICY]
        return self._distribution.choose_with_log_likelihood(outputs, noise)

    def _values(self, critics: tf.Tensor, observations: Any, actions: tf.Tensor) -> tf.Tensor:
        """Return the values of both critics, [2, B]."""
        return values_of(self._critic_network, critics, 2, observations, actions)

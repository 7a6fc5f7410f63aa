"""DDPG, and TD3: the same with twin critics, delayed policy updates and smoothed targets.

Lillicrap et al. 2016, https://arxiv.org/abs/1509.02971, algorithm 1; Fujimoto et al. 2018,
https://arxiv.org/abs/1802.09477, algorithm 1. At each update the critics learn ``target_values``;
at some of them the policy learns the first critic's values, and the targets of both follow.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from relaax.learning.distributions import Deterministic
from relaax.learning.distributions.gaussian_tf import shaped
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.parameters_tf import outputs_of
from relaax.learning.off_policy import TransitionBatch
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.off_policy.critics import CRITICS
from relaax.learning.off_policy.update_tf import GraphUpdate, Losses, values_of
from relaax.learning.variables_tf import Variables

#: The followers of the policy, and of the critics.
TARGET_POLICY, TARGET_CRITICS = "target_policy", "target_critics"


@dataclass(frozen=True)
class Rates:
    """How fast targets follow, how often the policy learns, and how targets are smoothed."""

    #: Part of the way that targets follow.
    target: float = 0.005
    #: Updates from one move of the targets to the next.
    target_every: int = 1
    #: Updates of the critics for each of the policy.
    policy_delay: int = 1
    #: Of the noise on actions behind a step, and what it is cut to.
    target_noise: float = 0.0
    target_noise_clip: float = 0.5


def target_values(rewards: tf.Tensor, discounts: tf.Tensor, next_values: tf.Tensor) -> tf.Tensor:
    """Return the target of all critics, [B]: the smallest of the next values [critics, B] counts.

    Fujimoto et al. 2018, equation (10). discounts: gamma to the number of steps, and 0 behind the
    end of an episode.
    """
    return rewards + discounts * tf.reduce_min(next_values, axis=0)


def smoothed_places(places: tf.Tensor, noise: tf.Tensor, sigma: float, most: float) -> tf.Tensor:
    """Return actions [B, A] in [-1, 1] with noise that is cut to ``most``; equation (14).

    noise: standard normal [B, A].
    """
    return tf.clip_by_value(places + tf.clip_by_value(sigma * noise, -most, most), -1.0, 1.0)


def critic_loss(values: tf.Tensor, targets: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Return the sum over critics of mean squared errors: values [critics, B], the others [B]."""
    errors = tf.square(values - targets[tf.newaxis])
    return tf.reduce_mean(tf.reduce_sum(errors, axis=0) * weights)


def policy_loss(values: tf.Tensor) -> tf.Tensor:
    """Return minus the mean value [B] of the policy's actions; Lillicrap et al. 2016, (6)."""
    return -tf.reduce_mean(values)


class TwinDelayed(GraphUpdate):
    """Updates the policy, the critics, and the targets of both; DDPG with one critic and no delay.

    The noise of a batch is standard normal, [B, A].
    """

    def __init__(
        self,
        policy: Network,
        critic: Network,
        critics: int,
        actions: Deterministic,
        variables: Variables,
        rates: Rates,
    ) -> None:
        super().__init__(variables, rates.target, rates.target_every)
        self._policy_network, self._critic_network = policy, critic
        self._critics = critics
        self._actions = actions
        self._rates = rates

    def learnt(self, number: int) -> tuple[str, ...]:
        """See GraphUpdate: the policy learns in some updates only."""
        if number % self._rates.policy_delay == 0:
            return (POLICY_VARIABLE, CRITICS)
        return (CRITICS,)

    def losses(
        self, batch: TransitionBatch, at: Mapping[str, tf.Tensor], names: tuple[str, ...]
    ) -> Losses:
        """See GraphUpdate."""
        targets = self._targets(batch, at)
        values = values_of(
            self._critic_network, at[CRITICS], self._critics, batch.observations, batch.actions
        )
        losses = {CRITICS: critic_loss(values, targets, batch.weights)}
        terms = {"critic loss": losses[CRITICS], "value": tf.reduce_mean(values)}
        if POLICY_VARIABLE in names:
            places = self._places(at[POLICY_VARIABLE], batch.observations)
            first = at[CRITICS][: self._critic_network.manifest.size]
            chosen = self._values(first, 1, batch.observations, places)[0]
            losses[POLICY_VARIABLE] = terms["policy loss"] = policy_loss(chosen)
        return Losses(losses, tf.reduce_mean(tf.abs(values - targets), axis=0), terms)

    def _targets(self, batch: TransitionBatch, at: Mapping[str, tf.Tensor]) -> tf.Tensor:
        rates, following = self._rates, batch.next_observations
        places = self._places(at[TARGET_POLICY], following)
        if rates.target_noise:
            places = smoothed_places(
                places, batch.noise, rates.target_noise, rates.target_noise_clip
            )
        values = self._values(at[TARGET_CRITICS], self._critics, following, places)
        return target_values(batch.rewards, batch.discounts, values)

    def _places(self, policy: tf.Tensor, observations: Any) -> tf.Tensor:
        """Return the policy's actions [B, A], in [-1, 1]."""
        return tf.tanh(outputs_of(self._policy_network, policy, observations)[POLICY])

    def _values(
        self, critics: tf.Tensor, count: int, observations: Any, places: tf.Tensor
    ) -> tf.Tensor:
        """Return the values of actions [B, A], [count, B]."""
        actions = shaped(places, self._actions.action_shape)
        return values_of(self._critic_network, critics, count, observations, actions)

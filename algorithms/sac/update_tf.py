"""The variables of soft actor-critic, and one update of them as one graph."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector
from relaax.learning.distributions.squashed_gaussian_tf import GraphSquashedGaussian
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.outputs_tf import outputs_of
from relaax.learning.off_policy import TransitionBatch
from relaax.learning.off_policy.critics_tf import values_of
from relaax.learning.off_policy.variables_tf import Variables

from .losses_tf import critic_loss, policy_loss, soft_target, temperature_loss

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class SacRates:
    """How fast what is learnt."""

    policy: float = 3e-4
    critic: float = 3e-4
    temperature: float = 3e-4
    #: Part of the way that target critics follow the critics at each update.
    target: float = 0.005
    target_entropy: float = -1.0


class SacUpdate:
    """Policy, twin critics, their targets, the temperature, and what Adam remembers of them.

    The noise of a batch is standard normal, [2, B, A]: of the actions now, and of the next ones.
    """

    def __init__(
        self,
        policy: Network,
        critic: Network,
        distribution: GraphSquashedGaussian,
        initial_policy: FloatVector,
        initial_critics: FloatArray,
        rates: SacRates,
        initial_temperature: float = 1.0,
    ) -> None:
        self._policy_network, self._critic_network = policy, critic
        self._distribution = distribution
        self._rates = rates
        critics = initial_critics.reshape(-1)
        self._variables = Variables(
            {
                "policy": initial_policy,
                "critics": critics,
                "targets": critics,
                "log_temperature": np.log([initial_temperature]).astype(np.float32),
            },
            {
                "policy": rates.policy,
                "critics": rates.critic,
                "log_temperature": rates.temperature,
            },
        )
        self._graph = tf.function(
            self._update, jit_compile=not policy.has_convolutions, autograph=False
        )

    @property
    def policy(self) -> FloatVector:
        """The policy's parameters, float32 [size]."""
        vector: FloatVector = self._variables["policy"].numpy()
        return vector

    def __call__(self, batch: TransitionBatch, number: int) -> tuple[FloatArray, dict[str, float]]:
        """Make one update; return the mean absolute error of each transition [B], and terms."""
        errors, terms = self._graph(*vars(batch).values())
        return errors.numpy(), {name: float(term) for name, term in terms.items()}

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all variables by name."""
        return self._variables.state()

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from ``state``."""
        self._variables.restore(state)

    def _update(self, *columns: tf.Tensor) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        batch = TransitionBatch(*columns)
        temperature = tf.exp(self._variables["log_temperature"][0])
        critic_terms, errors = self._update_critics(batch, temperature)
        policy_terms, likelihoods = self._update_policy(batch, temperature)
        self._update_temperature(likelihoods)
        self._variables.follow("targets", "critics", self._rates.target)
        return errors, {**critic_terms, **policy_terms, "temperature": temperature}

    def _update_critics(
        self, batch: TransitionBatch, temperature: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        following = batch.next_observations
        actions, likelihoods = self._choose(self._variables["policy"], following, batch.noise[1])
        values = self._values(self._variables["targets"], following, actions)
        targets = soft_target(batch.rewards, batch.discounts, values, likelihoods, temperature)
        with tf.GradientTape() as tape:
            critics = tf.identity(self._variables["critics"])
            tape.watch(critics)
            values = self._values(critics, batch.observations, batch.actions)
            loss = critic_loss(values, targets, batch.weights)
        self._variables.descend("critics", tape.gradient(loss, critics))
        errors = tf.reduce_mean(tf.abs(values - targets), axis=0)
        return {"critic loss": loss, "value": tf.reduce_mean(values)}, errors

    def _update_policy(
        self, batch: TransitionBatch, temperature: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        with tf.GradientTape() as tape:
            policy = tf.identity(self._variables["policy"])
            tape.watch(policy)
            actions, likelihoods = self._choose(policy, batch.observations, batch.noise[0])
            values = self._values(self._variables["critics"], batch.observations, actions)
            loss = policy_loss(values, likelihoods, temperature)
        self._variables.descend("policy", tape.gradient(loss, policy))
        return {"policy loss": loss, "entropy": -tf.reduce_mean(likelihoods)}, likelihoods

    def _update_temperature(self, likelihoods: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            log_temperature = tf.identity(self._variables["log_temperature"])
            tape.watch(log_temperature)
            loss = temperature_loss(log_temperature, likelihoods, self._rates.target_entropy)
        self._variables.descend("log_temperature", tape.gradient(loss, log_temperature))

    def _choose(
        self, policy: tf.Tensor, observations: Any, noise: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        outputs = outputs_of(self._policy_network, policy, observations)[POLICY]
        return self._distribution.choose_with_log_likelihood(outputs, noise)

    def _values(self, critics: tf.Tensor, observations: Any, actions: tf.Tensor) -> tf.Tensor:
        """Return the values of both critics, [2, B]."""
        return values_of(self._critic_network, critics, 2, observations, actions)

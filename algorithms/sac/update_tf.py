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
from relaax.learning.optimizers import AdamSettings
from relaax.learning.optimizers.adam_tf import GraphAdam

from .config import ACTION, OBSERVATION, VALUE
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


@dataclass(frozen=True)
class Transitions:
    """A batch of transitions, as numpy arrays or tensors."""

    observations: Any
    actions: Any
    rewards: Any
    discounts: Any
    next_observations: Any
    weights: Any
    #: Standard normal, [2, B, A]: of the actions now, and of the next ones.
    noise: Any


class SacUpdate:
    """Policy, twin critics, their targets, the temperature, and what Adam remembers of them."""

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
        self._policy = tf.Variable(initial_policy)
        self._critics = tf.Variable(initial_critics.reshape(-1))
        self._targets = tf.Variable(initial_critics.reshape(-1))
        self._log_temperature = tf.Variable(np.log([initial_temperature]).astype(np.float32))
        adam = AdamSettings()
        self._adam = {
            "policy": GraphAdam(len(initial_policy), adam, rates.policy),
            "critics": GraphAdam(initial_critics.size, adam, rates.critic),
            "temperature": GraphAdam(1, adam, rates.temperature),
        }
        jit = not policy.has_convolutions
        self._graph = tf.function(self._update, jit_compile=jit, autograph=False)

    @property
    def policy(self) -> FloatVector:
        """The policy's parameters, float32 [size]."""
        vector: FloatVector = self._policy.numpy()
        return vector

    def __call__(self, batch: Transitions) -> tuple[FloatArray, dict[str, float]]:
        """Make one update; return the mean absolute error of each transition [B], and terms."""
        errors, terms = self._graph(*vars(batch).values())
        return errors.numpy(), {name: float(term) for name, term in terms.items()}

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all variables by name."""
        variables = {name: variable.numpy() for name, variable in self._variables().items()}
        return variables | {
            f"{of}/{name}": slot
            for of, adam in self._adam.items()
            for name, slot in adam.slots().items()
        }

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from ``state``."""
        for name, variable in self._variables().items():
            variable.assign(state[name])
        for of, adam in self._adam.items():
            prefix = f"{of}/"
            adam.restore(
                {n.removeprefix(prefix): s for n, s in state.items() if n.startswith(prefix)}
            )

    def _variables(self) -> dict[str, tf.Variable]:
        return {
            "policy": self._policy,
            "critics": self._critics,
            "targets": self._targets,
            "log_temperature": self._log_temperature,
        }

    def _update(self, *columns: tf.Tensor) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        batch = Transitions(*columns)
        temperature = tf.exp(self._log_temperature[0])
        critic_terms, errors = self._update_critics(batch, temperature)
        policy_terms, likelihoods = self._update_policy(batch, temperature)
        self._update_temperature(likelihoods)
        self._targets.assign_add(self._rates.target * (self._critics - self._targets))
        return errors, {**critic_terms, **policy_terms, "temperature": temperature}

    def _update_critics(
        self, batch: Transitions, temperature: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        actions, likelihoods = self._choose(self._policy, batch.next_observations, batch.noise[1])
        values = self._values(self._targets, batch.next_observations, actions)
        targets = soft_target(batch.rewards, batch.discounts, values, likelihoods, temperature)
        with tf.GradientTape() as tape:
            critics = tf.identity(self._critics)
            tape.watch(critics)
            values = self._values(critics, batch.observations, batch.actions)
            loss = critic_loss(values, targets, batch.weights)
        self._adam["critics"].apply(self._critics, tape.gradient(loss, critics))
        errors = tf.reduce_mean(tf.abs(values - targets), axis=0)
        return {"critic loss": loss, "value": tf.reduce_mean(values)}, errors

    def _update_policy(
        self, batch: Transitions, temperature: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        with tf.GradientTape() as tape:
            policy = tf.identity(self._policy)
            tape.watch(policy)
            actions, likelihoods = self._choose(policy, batch.observations, batch.noise[0])
            values = self._values(self._critics, batch.observations, actions)
            loss = policy_loss(values, likelihoods, temperature)
        self._adam["policy"].apply(self._policy, tape.gradient(loss, policy))
        return {"policy loss": loss, "entropy": -tf.reduce_mean(likelihoods)}, likelihoods

    def _update_temperature(self, likelihoods: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            log_temperature = tf.identity(self._log_temperature)
            tape.watch(log_temperature)
            loss = temperature_loss(log_temperature, likelihoods, self._rates.target_entropy)
        slope = tape.gradient(loss, log_temperature)
        self._adam["temperature"].apply(self._log_temperature, slope)

    def _choose(
        self, policy: tf.Tensor, observations: Any, noise: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        outputs = outputs_of(self._policy_network, policy, observations)[POLICY]
        return self._distribution.choose_with_log_likelihood(outputs, noise)

    def _values(self, critics: tf.Tensor, observations: Any, actions: tf.Tensor) -> tf.Tensor:
        """Return the values of both critics, [2, B]."""
        inputs = observations if isinstance(observations, dict) else {OBSERVATION: observations}
        inputs = {**inputs, ACTION: actions}
        return tf.stack(
            [
                outputs_of(self._critic_network, vector, inputs)[VALUE][:, 0]
                for vector in tf.split(critics, 2)
            ]
        )

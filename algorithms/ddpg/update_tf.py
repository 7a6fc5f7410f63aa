"""The variables of DDPG and TD3, and one update of them as one graph."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector
from relaax.learning.distributions import Deterministic
from relaax.learning.distributions.shapes_tf import shaped
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.outputs_tf import outputs_of
from relaax.learning.off_policy import TransitionBatch
from relaax.learning.off_policy.critics_tf import values_of
from relaax.learning.off_policy.variables_tf import Variables

from .losses_tf import critic_loss, policy_loss, smoothed_places, target_values

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class DdpgRates:
    """How fast what is learnt, and how often."""

    policy: float = 1e-3
    critic: float = 1e-3
    #: Part of the way that targets follow.
    target: float = 0.005
    #: Updates from one move of the targets to the next.
    target_every: int = 1
    #: Updates of the critics for each of the policy.
    policy_delay: int = 1
    #: Of the noise on actions behind a step, and what it is cut to.
    target_noise: float = 0.0
    target_noise_clip: float = 0.5


class DdpgUpdate:
    """Policy, critics, the targets of both, and what Adam remembers of them.

    initial_critics: float32 [critics, size]. The noise of a batch is standard normal, [B, A].
    """

    def __init__(
        self,
        policy: Network,
        critic: Network,
        actions: Deterministic,
        initial_policy: FloatVector,
        initial_critics: FloatArray,
        rates: DdpgRates,
    ) -> None:
        self._policy_network, self._critic_network = policy, critic
        self._actions = actions
        self._rates = rates
        self._critics = len(initial_critics)
        critics = initial_critics.reshape(-1)
        self._variables = Variables(
            {
                "policy": initial_policy,
                "critics": critics,
                "target_policy": initial_policy,
                "target_critics": critics,
            },
            {"policy": rates.policy, "critics": rates.critic},
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
        learns_policy = number % self._rates.policy_delay == 0
        moves_targets = number % self._rates.target_every == 0
        errors, terms = self._graph(learns_policy, moves_targets, *vars(batch).values())
        return errors.numpy(), {name: float(term) for name, term in terms.items()}

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all variables by name."""
        return self._variables.state()

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from ``state``."""
        self._variables.restore(state)

    def _update(
        self, learns_policy: bool, moves_targets: bool, *columns: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        batch = TransitionBatch(*columns)
        terms, errors = self._update_critics(batch)
        if learns_policy:
            terms |= self._update_policy(batch)
        if moves_targets:
            self._variables.follow("target_policy", "policy", self._rates.target)
            self._variables.follow("target_critics", "critics", self._rates.target)
        return errors, terms

    def _update_critics(self, batch: TransitionBatch) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        rates, following = self._rates, batch.next_observations
        places = self._places(self._variables["target_policy"], following)
        if rates.target_noise:
            places = smoothed_places(
                places, batch.noise, rates.target_noise, rates.target_noise_clip
            )
        behind = self._values(self._variables["target_critics"], following, places)
        targets = target_values(batch.rewards, batch.discounts, behind)
        with tf.GradientTape() as tape:
            critics = tf.identity(self._variables["critics"])
            tape.watch(critics)
            values = values_of(
                self._critic_network, critics, self._critics, batch.observations, batch.actions
            )
            loss = critic_loss(values, targets, batch.weights)
        self._variables.descend("critics", tape.gradient(loss, critics))
        errors = tf.reduce_mean(tf.abs(values - targets), axis=0)
        return {"critic loss": loss, "value": tf.reduce_mean(values)}, errors

    def _update_policy(self, batch: TransitionBatch) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as tape:
            policy = tf.identity(self._variables["policy"])
            tape.watch(policy)
            places = self._places(policy, batch.observations)
            first = self._variables["critics"][: self._critic_network.manifest.size]
            loss = policy_loss(self._values(first, batch.observations, places, count=1)[0])
        self._variables.descend("policy", tape.gradient(loss, policy))
        return {"policy loss": loss}

    def _places(self, policy: tf.Tensor, observations: Any) -> tf.Tensor:
        """Return the policy's actions as places between the bounds, [B, A] in [-1, 1]."""
        return tf.tanh(outputs_of(self._policy_network, policy, observations)[POLICY])

    def _values(
        self, critics: tf.Tensor, observations: Any, places: tf.Tensor, count: int | None = None
    ) -> tf.Tensor:
        """Return the values of the actions at places, [critics, B]."""
        actions = shaped(
            self._actions.middle + self._actions.half * places, self._actions.action_shape
        )
        return values_of(
            self._critic_network, critics, count or self._critics, observations, actions
        )

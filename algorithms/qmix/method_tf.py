"""Q-learning of a team: the value of all agents' actions, made of the values of each one's.

Sunehag et al. 2017 (https://arxiv.org/abs/1706.05296), equation (1), VDN: their sum. Rashid et al.
2018 (https://arxiv.org/abs/1803.11485), section 4, QMIX: a network of two layers whose weights are
not negative, and depend on the state. Either grows with each agent's value, so that the best action
of each agent, by its own values, is part of the best one of all: equation (4) there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from relaax.learning.distributions import ValuesOfChoices
from relaax.learning.distributions.categorical_tf import GraphValuesOfChoices
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.parameters_tf import outputs_of
from relaax.learning.off_policy import TransitionBatch
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.off_policy.update_tf import LimitedUpdate, Losses
from relaax.learning.variables_tf import Variables

from .config import BIAS, LAST_BIAS, LAST_WEIGHTS, MIXER, WEIGHTS

#: The followers of the agents' network and of the mixer.
TARGET, TARGET_MIXER = "target", "target_mixer"


@dataclass(frozen=True)
class Mixer:
    """Makes one value of those of all agents: by hypernetworks, or without one as their sum.

    state: the name of the observation that the hypernetworks see; None: of one without a name.
    """

    network: Network | None
    state: str | None

    def __call__(
        self, at: Mapping[str, tf.Tensor], name: str, values: tf.Tensor, observations: Any
    ) -> tf.Tensor:
        """Return the value of all agents' actions [B], of ``values`` [B, N] of each one's.

        name: of the hypernetworks' parameters, among those ``at`` hand.
        """
        if self.network is None:
            return tf.reduce_sum(values, axis=1)
        state = observations if self.state is None else observations[self.state]
        made = outputs_of(self.network, at[name], state)
        return mixed(values, made)


def mixed(values: tf.Tensor, made: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Return the mixing network's output [B] for values [B, N], of the weights that are ``made``.

    Section 4: weights are absolute values, biases are not; the hidden layer is an ELU.
    """
    agents = values.shape[1]
    weights = tf.abs(tf.reshape(made[WEIGHTS], [-1, agents, made[BIAS].shape[1]]))
    hidden = tf.nn.elu(tf.einsum("bn,bnu->bu", values, weights) + made[BIAS])
    return tf.reduce_sum(hidden * tf.abs(made[LAST_WEIGHTS]), axis=1) + made[LAST_BIAS][:, 0]


class TeamQLearning(LimitedUpdate):
    """Updates the agents' network, the mixer and their targets; it draws nothing.

    Targets follow as ``GraphUpdate`` says. ``is_double``: the network chooses the actions behind a
    step, and its target values them. Gradients of both together longer than ``gradient_norm`` are
    scaled down. ``action_mask`` names the observation that says which actions are allowed.
    """

    def __init__(
        self,
        network: Network,
        values: ValuesOfChoices,
        mixer: Mixer,
        variables: Variables,
        target_rate: float,
        target_every: int,
        is_double: bool = True,
        gradient_norm: float | None = None,
        action_mask: str | None = None,
    ) -> None:
        super().__init__(variables, target_rate, target_every, gradient_norm)
        self._network = network
        self._actions = values.actions
        self._values = GraphValuesOfChoices(values)
        self._mix = mixer
        self._is_double = is_double
        self._mask = action_mask

    def losses(
        self, batch: TransitionBatch, at: Mapping[str, tf.Tensor], names: tuple[str, ...]
    ) -> Losses:
        """See GraphUpdate. The loss is half the squared error of the value of all."""
        taken = self._of(batch.actions, self._outputs(at[POLICY_VARIABLE], batch.observations))
        value = self._mix(at, MIXER, taken, batch.observations)
        behind = self._mix(at, TARGET_MIXER, self._behind(batch, at), batch.next_observations)
        errors = value - (batch.rewards + batch.discounts * behind)
        loss = tf.reduce_mean(0.5 * tf.square(errors) * batch.weights)
        terms = {"loss": loss, "value": tf.reduce_mean(value)}
        return Losses(dict.fromkeys(names, loss), tf.abs(errors), terms)

    def _behind(self, batch: TransitionBatch, at: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Return the target's values [B, N] of each agent's best action behind a step."""
        observations = batch.next_observations
        outputs = chosen_by = self._outputs(at[TARGET], observations)
        if self._is_double:
            chosen_by = self._outputs(at[POLICY_VARIABLE], observations)
        if self._mask is not None:
            chosen_by = self._values.masked(chosen_by, observations[self._mask])
        return self._of(self._values.mode(chosen_by), outputs)

    def _outputs(self, vector: tf.Tensor, observations: Any) -> tf.Tensor:
        """Return the values of all agents' actions, [B, N * A]."""
        return outputs_of(self._network, vector, observations)[POLICY]

    def _of(self, actions: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """Return the values [B, N] of actions [B, N], among ``outputs`` [B, N * A]."""
        chosen = tf.one_hot(actions, self._actions)
        return tf.reduce_sum(self._values.values(outputs) * chosen, axis=-1)

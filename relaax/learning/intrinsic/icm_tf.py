"""Curiosity by self-supervised prediction (Pathak et al. 2017, https://arxiv.org/abs/1705.05363).

A state is seen as features that help to say which action led to the next one. Parts of a state that
no action has an effect on are not among them. An agent is rewarded where its prediction of the next
features is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import tensorflow as tf

from relaax.learning.distributions import GraphDistribution
from relaax.learning.intrinsic.settings import FEATURES, FORWARD, INVERSE
from relaax.learning.intrinsic.steps_tf import BoolArray, SeenSteps, Vectors
from relaax.learning.networks import Network
from relaax.learning.networks.layers_tf import ObservationTensors
from relaax.learning.networks.parameters_tf import outputs_of
from relaax.learning.rollouts import RolloutBatch


@dataclass(frozen=True)
class Icm:
    """Features phi(s), the inverse model g, and the forward model f."""

    networks: Mapping[str, Network]
    beta: float
    #: Of discrete actions; None: continuous ones, whose likelihoods are those of a unit variance.
    distribution: GraphDistribution | None

    def counts(self, rollouts: RolloutBatch) -> BoolArray:
        """Return steps of the policy's own whose next state is of the same episode.

        The last state of an episode that was terminated is not sent.
        """
        found: BoolArray = (rollouts.on_policy > 0) & (rollouts.starts[1:] == 0)
        return found

    def rewards(self, vectors: Vectors, steps: SeenSteps) -> tf.Tensor:
        """Return equation (6): half of the forward model's squared error, without eta."""
        return self._forward_loss(vectors, steps)

    def losses(self, vectors: Vectors, steps: SeenSteps) -> dict[str, tf.Tensor]:
        """Return the two terms of equation (7): ``(1 - beta) L_I + beta L_F``."""
        return {
            "inverse loss": (1.0 - self.beta) * self._inverse_loss(vectors, steps),
            "forward loss": self.beta * self._forward_loss(vectors, steps),
        }

    def _inverse_loss(self, vectors: Vectors, steps: SeenSteps) -> tf.Tensor:
        """Equations (2) and (3): the likelihood of the action, given both states' features."""
        both = [self._features(vectors, at) for at in (steps.observations, steps.following)]
        guess = self._outputs(INVERSE, vectors, tf.concat(both, axis=1))
        if self.distribution is None:
            return 0.5 * tf.reduce_sum(tf.square(guess - steps.action_inputs), axis=1)
        return -self.distribution.log_likelihood(guess, steps.actions)

    def _forward_loss(self, vectors: Vectors, steps: SeenSteps) -> tf.Tensor:
        """Equations (4) and (5): half of the squared error of the next state's features."""
        now = self._features(vectors, steps.observations)
        guess = self._outputs(FORWARD, vectors, tf.concat([now, steps.action_inputs], axis=1))
        return 0.5 * tf.reduce_sum(
            tf.square(guess - self._features(vectors, steps.following)), axis=1
        )

    def _features(self, vectors: Vectors, states: ObservationTensors) -> tf.Tensor:
        return self._outputs(FEATURES, vectors, states)

    def _outputs(self, name: str, vectors: Vectors, inputs: ObservationTensors) -> tf.Tensor:
        return outputs_of(self.networks[name], vectors[name], inputs)[name]

"""Random network distillation (Burda et al. 2018, https://arxiv.org/abs/1810.12894).

A network learns to predict the outputs of another one, which is random and stays as it is. It errs
where there was little to learn from: in states that are new.
"""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from relaax.algorithm_base import FloatVector
from relaax.learning.intrinsic.settings import PREDICTOR, TARGET
from relaax.learning.intrinsic.steps_tf import BoolArray, SeenSteps, Vectors
from relaax.learning.networks import Network
from relaax.learning.networks.parameters_tf import outputs_of
from relaax.learning.rollouts import RolloutBatch


@dataclass(frozen=True)
class Rnd:
    """The predictor, and the target with its parameters [size]."""

    predictor: Network
    target: Network
    target_vector: FloatVector

    def counts(self, rollouts: RolloutBatch) -> BoolArray:
        """Return all steps: behind the end of an episode comes the first state of the next one."""
        found: BoolArray = np.asarray(rollouts.valid > 0)
        return found

    def rewards(self, vectors: Vectors, steps: SeenSteps) -> tf.Tensor:
        """Return section 2.2's ``||f^(x) - f(x)||**2`` of the states that followed."""
        guess = outputs_of(self.predictor, vectors[PREDICTOR], steps.following)[PREDICTOR]
        target = outputs_of(self.target, tf.constant(self.target_vector), steps.following)[TARGET]
        return tf.reduce_sum(tf.square(guess - target), axis=1)

    def losses(self, vectors: Vectors, steps: SeenSteps) -> dict[str, tf.Tensor]:
        """Return the same: a state that is predicted better earns less."""
        return {"predictor loss": self.rewards(vectors, steps)}

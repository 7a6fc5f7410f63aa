"""PPO with L-BFGS: a price for the KL divergence in the place of the trust region.

After John Schulman's modular_rl (https://github.com/joschu/modular_rl), which came before the PPO
of Schulman et al. 2017 (https://arxiv.org/abs/1707.06347) with its equation (8) and rule.
"""

import tensorflow as tf

from .lbfgs_tf import minimized
from .method_tf import Found, PolicyStep
from .slopes_tf import OfParameters

#: The penalty stays as long as the divergence lies between these multiples of the target.
LOW, HIGH = 0.7, 1.3

PENALTY_FACTOR = 1.5

#: The penalty stays within these: else batches without advantages would bring it to 0 for good.
PENALTY_RANGE = 1e-4, 1e4


class PenalizedStep(PolicyStep):
    """Maximises the surrogate less penalty and cut-off, by ``iterations`` of L-BFGS.

    penalty: weight of the KL divergence at first; it follows ``kl_target``. cutoff: weight of the
    square above twice the target.
    """

    def __init__(self, kl_target: float, penalty: float, cutoff: float, iterations: int) -> None:
        self._kl_target, self._cutoff, self._iterations = kl_target, cutoff, iterations
        self._penalty = tf.Variable(penalty, trainable=False)
        self.variables = {"kl penalty": self._penalty}

    def moved(self, old: tf.Tensor, surrogate: OfParameters, divergence: OfParameters) -> Found:
        """See PolicyStep; the term ``kl penalty`` is the weight that has counted."""
        penalty = tf.identity(self._penalty)

        def loss(parameters: tf.Tensor) -> tf.Tensor:
            kl = divergence(parameters)
            excess = tf.maximum(kl - 2.0 * self._kl_target, 0.0)
            return penalty * kl + self._cutoff * tf.square(excess) - surrogate(parameters)

        new = minimized(loss, old, self._iterations)
        self._penalty.assign(adapted(penalty, divergence(new), self._kl_target))
        return Found(new, {"kl penalty": penalty})


def adapted(penalty: tf.Tensor, kl: tf.Tensor, target: float) -> tf.Tensor:
    """Return the penalty for the batch that follows one that has moved the policy by ``kl``."""
    factor = tf.where(kl < LOW * target, 1.0 / PENALTY_FACTOR, 1.0)
    factor = tf.where(kl > HIGH * target, PENALTY_FACTOR, factor)
    return tf.clip_by_value(penalty * factor, *PENALTY_RANGE)

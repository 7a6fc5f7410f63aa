"""Trust region policy optimization (Schulman et al. 2015, https://arxiv.org/abs/1502.05477)."""

import tensorflow as tf

from relaax.learning.graph_learner_tf import GraphLearner
from relaax.learning.losses_tf import value_loss
from relaax.learning.networks import POLICY
from relaax.learning.networks.parameters_tf import unrolled
from relaax.learning.on_policy import VALUE
from relaax.learning.returns_tf import n_step_targets, normalized
from relaax.learning.rollouts import LOG_PROBABILITY

DAMPING, CONJUGATE_STEPS, VALUE_STEPS, TRACE_DECAY = 0.1, 10, 20, 0.95


class NaturalGradient(GraphLearner):
    """Moves the policy along the natural gradient while that helps; values learn the returns."""

    def __init__(self, network, actions, discount, largest_kl, variables, inputs):
        super().__init__(variables, inputs)
        self._network, self._actions = network, actions
        self._discount, self._largest_kl = discount, largest_kl

    def update(self, batch):
        """Section 6 and appendix C: equation (14), Fisher-vector products, and the line search."""
        old, count = tf.identity(self.variables[POLICY]), tf.reduce_sum(batch.valid)
        before, values = self._outputs(old, batch)
        rows = batch.rewards, batch.terminated, batch.valid, values
        returns, advantages = n_step_targets(*rows, self._discount, TRACE_DECAY)
        advantages = normalized(advantages, batch.on_policy)

        def surrogate(vector):
            chosen = self._actions.log_likelihood(self._outputs(vector, batch)[0], batch.actions)
            ratios = tf.exp(chosen - batch.extras[LOG_PROBABILITY])
            return tf.reduce_sum(batch.on_policy * ratios * advantages) / count

        def divergence(vector):
            moved = self._actions.kl(before, self._outputs(vector, batch)[0])
            return tf.reduce_sum(batch.valid * moved) / count

        def fisher(direction):
            return DAMPING * direction + slope(
                lambda at: dot(slope(divergence, at), direction), old
            )

        def loss(vector):
            return value_loss(self._outputs(vector, batch)[1][:-1], returns, batch.valid) / count

        direction = conjugate_gradient(fisher, slope(surrogate, old))
        longest = direction * tf.sqrt(2 * self._largest_kl / dot(direction, fisher(direction)))
        new, least = old, surrogate(old)
        for part in (0.06, 0.12, 0.25, 0.5, 1.0):  # the longest step that helps and stays near
            tried = old + part * longest
            helps = (divergence(tried) <= self._largest_kl) & (surrogate(tried) > least)
            new = tf.where(helps, tried, new)
        self.variables[POLICY].assign(new)
        for _ in range(VALUE_STEPS):
            self.variables.descend(POLICY, slope(loss, tf.identity(self.variables[POLICY])))
        return {"surrogate": surrogate(new) - least, "kl": divergence(new)}, {}

    def _outputs(self, vector, batch):
        """Return the policy's outputs [T, K, N], and the values [T + 1, K]."""
        outputs = unrolled(self._network, vector, batch)
        return outputs[POLICY][:-1], outputs[VALUE][..., 0]


def conjugate_gradient(product, right):
    """Return x of ``product(x) = right``, nearly."""
    x, rest, towards = tf.zeros_like(right), right, right
    for _ in range(CONJUGATE_STEPS):
        curved, length = product(towards), dot(rest, rest)
        step = length / (dot(towards, curved) + 1e-12)
        x, rest = x + step * towards, rest - step * curved
        towards = rest + dot(rest, rest) / (length + 1e-12) * towards
    return x


def slope(function, at):
    """Return the gradient of ``function`` at a vector."""
    with tf.GradientTape() as tape:
        tape.watch(at)
        value = function(at)
    return tape.gradient(value, at, unconnected_gradients=tf.UnconnectedGradients.ZERO)


def dot(one, other):
    return tf.tensordot(one, other, 1)

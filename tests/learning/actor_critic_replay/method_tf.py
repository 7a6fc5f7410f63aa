"""Actor-critic with experience replay (Wang et al. 2017, https://arxiv.org/abs/1611.01224).

Without its trust region: Retrace targets (section 3.1, equation 5) and truncated importance weights
with bias correction (section 3.2, equation 9), by the distributions that have acted.
"""

import tensorflow as tf

from relaax.learning.graph_learner_tf import GraphLearner
from relaax.learning.networks import POLICY
from relaax.learning.networks.parameters_tf import unrolled
from relaax.learning.returns_tf import retrace_targets
from relaax.learning.rollouts import DISTRIBUTION

from .config import ACTION_VALUES


class ActorCriticReplay(GraphLearner):
    def __init__(self, network, discount, entropy_beta, largest_weight, variables, inputs):
        super().__init__(variables, inputs)
        self._network, self._discount = network, discount
        self._entropy_beta, self._largest_weight = entropy_beta, largest_weight

    def update(self, fresh, replayed):
        """Take one step down the sum of both losses."""
        with tf.GradientTape() as tape:
            vector = tf.identity(self.variables[POLICY])
            tape.watch(vector)
            losses = [self._loss(vector, batch) for batch in (fresh, replayed)]
            loss = tf.add_n(losses)
        gradient = tf.clip_by_norm(tape.gradient(loss, vector), 1.0)
        self.variables.descend(POLICY, gradient)
        return {"fresh loss": losses[0], "replayed loss": losses[1]}, {}

    def _loss(self, vector, batch):
        outputs = unrolled(self._network, vector, batch)
        logits, action_values = outputs[POLICY], outputs[ACTION_VALUES]
        log_policy = tf.nn.log_softmax(logits)
        policy, fixed = tf.stop_gradient(tf.exp(log_policy)), tf.stop_gradient(action_values)
        values = tf.reduce_sum(policy * fixed, axis=-1)  # [T + 1, K]
        ratios = tf.exp(
            tf.stop_gradient(log_policy[:-1]) - tf.nn.log_softmax(batch.extras[DISTRIBUTION])
        )  # of all actions, [T, K, A]
        taken = tf.one_hot(batch.actions, logits.shape[-1])
        ratio = tf.reduce_sum(taken * ratios, axis=-1)
        chosen_values = tf.reduce_sum(taken * action_values[:-1], axis=-1)
        targets = retrace_targets(
            batch.rewards, batch.terminated, values, tf.stop_gradient(chosen_values),
            batch.valid * tf.minimum(ratio, 1.0), self._discount,
        )  # fmt: skip
        value_loss = 0.5 * tf.square(targets - chosen_values)

        advantages = (fixed - values[..., tf.newaxis])[:-1]
        weight = tf.minimum(ratio, self._largest_weight) * (targets - values[:-1])
        correction = tf.maximum(1.0 - self._largest_weight / ratios, 0.0) * policy[:-1] * advantages
        directions = taken * weight[..., tf.newaxis] + correction
        policy_gain = tf.reduce_sum(directions * log_policy[:-1], axis=-1)
        entropy = -tf.reduce_sum(tf.exp(log_policy) * log_policy, axis=-1)[:-1]
        losses = value_loss - policy_gain - self._entropy_beta * entropy
        return tf.reduce_sum(batch.valid * losses) / tf.reduce_sum(batch.valid)

"""Double Q-learning with a recurrent network.

Kapturowski et al. 2019 (R2D2, https://openreview.net/forum?id=r1lyTjAqYX), section 2.3: the network
begins with the state that was stored, and with rows that it only passes through. Targets are those
of van Hasselt et al. 2016 (https://arxiv.org/abs/1509.06461).
"""

import tensorflow as tf

from relaax.learning.graph_learner_tf import GraphLearner
from relaax.learning.networks import POLICY
from relaax.learning.networks.parameters_tf import unrolled

TARGET = "target"


class RecurrentQLearning(GraphLearner):
    def __init__(self, network, discount, target_rate, variables, inputs):
        super().__init__(variables, inputs)
        self._network, self._discount, self._target_rate = network, discount, target_rate

    def update(self, batch):
        """Take one step, and let the target follow."""
        count = tf.reduce_sum(batch.valid)  # without the rows of the burn-in
        following = self._values(self.variables[TARGET], batch)
        with tf.GradientTape() as tape:
            vector = tf.identity(self.variables[POLICY])
            tape.watch(vector)
            values = self._values(vector, batch)
            best = tf.one_hot(tf.argmax(values, axis=-1), values.shape[-1])
            behind = (1.0 - batch.terminated) * tf.reduce_sum(best * following, axis=-1)[1:]
            targets = tf.stop_gradient(batch.rewards + self._discount * behind)
            taken = tf.one_hot(batch.actions, values.shape[-1])
            errors = tf.reduce_sum(taken * values[:-1], axis=-1) - targets
            loss = tf.reduce_sum(batch.valid * tf.square(errors)) / count
        self.variables.descend(POLICY, tape.gradient(loss, vector))
        self.variables.follow(self._target_rate)
        return {"loss": loss}, {}

    def _values(self, vector, batch):
        """Return the values of all actions, [T + 1, K, A]."""
        return unrolled(self._network, vector, batch)[POLICY]

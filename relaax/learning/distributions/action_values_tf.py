"""One of several actions by their values, inside a TensorFlow graph; see ``action_values``."""

import tensorflow as tf

from relaax.learning.distributions.action_values import ActionValues


class GraphActionValues:
    """The values that outputs [B, N] make."""

    def __init__(self, values: ActionValues) -> None:
        self._values = values

    def choose(self, outputs: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Return the actions int64 [B] with the highest sums of value and noise [B, A]."""
        return tf.argmax(self.values(outputs) + noise, axis=-1)

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the best actions int64 [B]."""
        return tf.argmax(self.values(outputs), axis=-1)

    def logits(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return what belongs to each action, [B, A, atoms]: its value alone if there is one."""
        count = self._values.actions + self._values.is_dueling
        parts = tf.reshape(outputs, [-1, count, self._values.atoms])
        if not self._values.is_dueling:
            return parts
        advantages, of_state = parts[:, :-1], parts[:, -1:]
        return of_state + advantages - tf.reduce_mean(advantages, axis=1, keepdims=True)

    def values(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the values of all actions, [B, A]."""
        logits = self.logits(outputs)
        if self._values.atoms == 1:
            return logits[:, :, 0]
        return tf.reduce_sum(tf.nn.softmax(logits) * self._values.support, axis=-1)

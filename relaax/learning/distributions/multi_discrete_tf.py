"""Several choices at once, inside a TensorFlow graph; see ``multi_discrete``."""

import tensorflow as tf

from relaax.learning.distributions.categorical_tf import GraphCategorical
from relaax.learning.distributions.multi_discrete import MultiDiscrete


class GraphMultiDiscrete:
    """The independent categoricals that logits [..., N] make."""

    def __init__(self, distribution: MultiDiscrete) -> None:
        self._nvec = list(distribution.nvec)
        self._choice = GraphCategorical()

    def choose(self, outputs: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Return the actions int64 [B, choices] that logits [B, N] and noise make."""
        return self.mode(outputs + noise)

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the most probable actions int64 [..., choices], from logits [..., N]."""
        return tf.stack([self._choice.mode(part) for part in self._parts(outputs)], axis=-1)

    def log_likelihood(self, outputs: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Return ``log pi(a | s)`` [...] of actions int [..., choices], from logits [..., N]."""
        columns = zip(self._parts(outputs), tf.unstack(actions, axis=-1), strict=True)
        return tf.add_n([self._choice.log_likelihood(part, column) for part, column in columns])

    def entropy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the entropy in nats [...], from logits [..., N]."""
        return tf.add_n([self._choice.entropy(part) for part in self._parts(outputs)])

    def kl(self, outputs_p: tf.Tensor, outputs_q: tf.Tensor) -> tf.Tensor:
        """Return ``KL(p || q)`` [...], from logits [..., N] of both."""
        parts = zip(self._parts(outputs_p), self._parts(outputs_q), strict=True)
        return tf.add_n([self._choice.kl(p, q) for p, q in parts])

    def masked(self, outputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Return logits [..., N] without the actions whose ``mask`` [..., N] is 0."""
        parts = zip(self._parts(outputs), self._parts(mask), strict=True)
        return tf.concat([self._choice.masked(part, allowed) for part, allowed in parts], axis=-1)

    def _parts(self, outputs: tf.Tensor) -> list[tf.Tensor]:
        """Return the columns of each choice."""
        return list(tf.split(outputs, self._nvec, axis=-1))

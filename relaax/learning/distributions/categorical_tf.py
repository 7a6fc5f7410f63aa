"""Choices inside a TensorFlow graph: one, several at once, bits, the action of highest value."""

import tensorflow as tf

from relaax.learning.distributions.action_values import (
    FORBIDDEN_VALUE,
    ActionValues,
    ValuesOfChoices,
)
from relaax.learning.distributions.bernoulli import Bernoulli
from relaax.learning.distributions.categorical import FORBIDDEN
from relaax.learning.distributions.gaussian_tf import as_columns, shaped
from relaax.learning.distributions.multi_discrete import MultiDiscrete


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
        """Return each action's outputs, [B, A, atoms]: its value alone if there is one atom."""
        count = self._values.actions + self._values.is_dueling
        parts = tf.reshape(outputs[:, : self._values.outputs], [-1, count, self._values.atoms])
        if not self._values.is_dueling:
            return parts
        advantages, of_state = parts[:, :-1], parts[:, -1:]
        return of_state + advantages - tf.reduce_mean(advantages, axis=1, keepdims=True)

    def values(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the values of all actions, [B, A]; ``FORBIDDEN_VALUE`` of those masked."""
        logits = self.logits(outputs)
        if self._values.atoms == 1:
            values = logits[:, :, 0]
        else:
            values = tf.reduce_sum(tf.nn.softmax(logits) * self._values.support, axis=-1)
        if outputs.shape[1] == self._values.outputs:
            return values
        return tf.where(outputs[:, self._values.outputs :] > 0, values, FORBIDDEN_VALUE)

    def masked(self, outputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Return outputs [B, N + A] with the mask [B, A] of actions behind them."""
        return tf.concat([outputs, tf.cast(mask, tf.float32)], axis=1)


class GraphValuesOfChoices:
    """The values of several choices that outputs [B, N] are."""

    def __init__(self, values: ValuesOfChoices) -> None:
        self._values = values

    def choose(self, outputs: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Return the actions int64 [B, choices] with the highest sums of value and noise [B, N]."""
        return self.mode(outputs + noise)

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the best actions int64 [B, choices]."""
        return tf.argmax(self.values(outputs), axis=-1)

    def values(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the values of all actions by choice, [B, choices, A]."""
        return tf.reshape(outputs, [-1, self._values.choices, self._values.actions])

    def masked(self, outputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Return values [B, N], ``FORBIDDEN_VALUE`` where the ``mask`` [B, N] is 0."""
        return tf.where(tf.cast(mask, tf.bool), outputs, FORBIDDEN_VALUE)


class GraphBernoulli:
    """The independent bits that logits [..., N] make."""

    def __init__(self, distribution: Bernoulli) -> None:
        self._shape = distribution.action_shape

    def choose(self, outputs: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Return the bits int64 [B, ...] that logits [B, N] and noise make."""
        return self.mode(outputs + noise)

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the most probable bits int64 [..., *shape], from logits [..., N]."""
        return shaped(tf.cast(outputs > 0, tf.int64), self._shape)

    def log_likelihood(self, outputs: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Return ``log pi(a | s)`` [...] of bits [..., *shape], from logits [..., N]."""
        bits = as_columns(actions, outputs)
        return tf.reduce_sum(bits * outputs - tf.nn.softplus(outputs), axis=-1)

    def entropy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the entropy in nats [...], from logits [..., N]."""
        terms = tf.nn.softplus(outputs) - tf.sigmoid(outputs) * outputs
        return tf.reduce_sum(terms, axis=-1)

    def kl(self, outputs_p: tf.Tensor, outputs_q: tf.Tensor) -> tf.Tensor:
        """Return ``KL(p || q)`` [...], from logits [..., N] of both."""
        ones = tf.nn.softplus(-outputs_q) - tf.nn.softplus(-outputs_p)
        zeros = tf.nn.softplus(outputs_q) - tf.nn.softplus(outputs_p)
        p = tf.sigmoid(outputs_p)
        return tf.reduce_sum(p * ones + (1.0 - p) * zeros, axis=-1)

    def masked(self, outputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Return logits [..., N] where a bit is always 0 whose ``mask`` [..., N] is 0."""
        return tf.where(tf.cast(mask, tf.bool), outputs, FORBIDDEN)


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


def masked_logits(logits: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Return logits [..., A], ``FORBIDDEN`` where ``mask`` [..., A] is 0; zeros if all are 0.

    No gradient reaches a logit whose mask is 0.
    """
    is_allowed = tf.cast(mask, tf.bool)
    has_choice = tf.reduce_any(is_allowed, axis=-1, keepdims=True)
    return tf.where(is_allowed, logits, tf.where(has_choice, FORBIDDEN, tf.zeros_like(logits)))


class GraphCategorical:
    """The distribution that logits [..., A] make."""

    def choose(self, outputs: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Return the actions int64 [B] that logits [B, A] and noise make."""
        return self.mode(outputs + noise)

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the most probable actions int64 [...], from logits [..., A]."""
        return tf.argmax(outputs, axis=-1)

    def log_likelihood(self, outputs: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Return ``log pi(a | s)`` [...] of actions int [...], from logits [..., A]."""
        # By a mask and not by tf.gather, which is far slower under XLA on a CPU.
        chosen = tf.one_hot(actions, outputs.shape[-1])
        return tf.reduce_sum(tf.nn.log_softmax(outputs) * chosen, axis=-1)

    def entropy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the entropy in nats [...], from logits [..., A]."""
        log_p = tf.nn.log_softmax(outputs)
        return -tf.reduce_sum(tf.exp(log_p) * log_p, axis=-1)

    def kl(self, outputs_p: tf.Tensor, outputs_q: tf.Tensor) -> tf.Tensor:
        """Return ``KL(p || q)`` [...], from logits [..., A] of both."""
        log_p, log_q = tf.nn.log_softmax(outputs_p), tf.nn.log_softmax(outputs_q)
        return tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=-1)

    def masked(self, outputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Return logits [..., A] without the actions whose ``mask`` [..., A] is 0."""
        return masked_logits(outputs, mask)

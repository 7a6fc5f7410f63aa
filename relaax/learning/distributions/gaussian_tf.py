"""Continuous actions without bounds, drawn or one for each state, inside a TensorFlow graph."""

from math import log, pi

import tensorflow as tf

from relaax.learning.distributions.deterministic import Deterministic
from relaax.learning.distributions.gaussian import RAW_BOUNDS, STANDARD_ENTROPY, DiagonalGaussian


class GraphDeterministic:
    """The actions that outputs [..., A] make."""

    def __init__(self, actions: Deterministic) -> None:
        self._actions = actions

    def choose(self, outputs: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Return the actions [B, ...] that outputs [B, A] and noise [B, A] make."""
        actions = tf.clip_by_value(tf.tanh(outputs) + noise, -1.0, 1.0)
        return shaped(actions, self._actions.action_shape)

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the actions [..., *shape] of outputs [..., A]."""
        return shaped(tf.tanh(outputs), self._actions.action_shape)


def shaped(columns: tf.Tensor, shape: tuple[int, ...]) -> tf.Tensor:
    """Return ``columns`` [..., N] as actions [..., *shape]."""
    if len(shape) == 1:
        return columns
    sizes = tf.concat([tf.shape(columns)[:-1], tf.constant(shape, tf.int32)], axis=0)
    return tf.reshape(columns, sizes)


def as_columns(actions: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """Return actions [..., *shape] as float32 [..., N], the shape of ``columns``."""
    return tf.reshape(tf.cast(actions, tf.float32), tf.shape(columns))


class GraphDiagonalGaussian:
    """The normal distributions that outputs [..., 2 A] make."""

    def __init__(self, distribution: DiagonalGaussian) -> None:
        self._distribution = distribution

    def choose(self, outputs: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Return the actions [B, ...] that outputs [B, 2 A] and noise make."""
        mean, sigma = self.mean_and_sigma(outputs)
        return shaped(mean + sigma * noise, self._distribution.action_shape)

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the means [..., *shape], from outputs [..., 2 A]."""
        mean, _ = self.mean_and_sigma(outputs)
        return shaped(mean, self._distribution.action_shape)

    def log_likelihood(self, outputs: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Return the logarithm of the density [...] of actions [..., *shape]."""
        mean, sigma = self.mean_and_sigma(outputs)
        deviations = (as_columns(actions, mean) - mean) / sigma
        terms = tf.square(deviations) / 2.0 + tf.math.log(sigma)
        return -tf.reduce_sum(terms, axis=-1) - self._distribution.actions * log(2 * pi) / 2

    def entropy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the differential entropy in nats [...], from outputs [..., 2 A]."""
        _, sigma = self.mean_and_sigma(outputs)
        constant = self._distribution.actions * STANDARD_ENTROPY
        return tf.reduce_sum(tf.math.log(sigma), axis=-1) + constant

    def kl(self, outputs_p: tf.Tensor, outputs_q: tf.Tensor) -> tf.Tensor:
        """Return ``KL(p || q)`` [...], from outputs [..., 2 A] of both."""
        mean_p, sigma_p = self.mean_and_sigma(outputs_p)
        mean_q, sigma_q = self.mean_and_sigma(outputs_q)
        ratio, distance = sigma_p / sigma_q, (mean_p - mean_q) / sigma_q
        terms = (tf.square(ratio) + tf.square(distance) - 1.0) / 2.0 - tf.math.log(ratio)
        return tf.reduce_sum(terms, axis=-1)

    def mean_and_sigma(self, outputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return means and standard deviations [..., A], from outputs [..., 2 A]."""
        mean, raw = tf.split(outputs, 2, axis=-1)
        if self._distribution.sigma == "exp":
            return mean, tf.exp(raw)
        if self._distribution.sigma == "bounded_exp":
            return mean, tf.exp(tf.clip_by_value(raw, *RAW_BOUNDS))
        return mean, tf.nn.softplus(raw) + self._distribution.least_sigma

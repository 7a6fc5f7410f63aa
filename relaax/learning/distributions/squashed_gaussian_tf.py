"""Continuous actions between -1 and 1, inside a TensorFlow graph; see ``squashed_gaussian``."""

from math import log

import tensorflow as tf

from relaax.learning.distributions.gaussian_tf import GraphDiagonalGaussian, as_columns, shaped
from relaax.learning.distributions.squashed_gaussian import (
    BOUND_MARGIN,
    NORMAL_POINTS,
    NORMAL_WEIGHTS,
    SquashedGaussian,
)


class GraphSquashedGaussian:
    """The squashed normal distributions that outputs [..., 2 A] make."""

    def __init__(self, distribution: SquashedGaussian) -> None:
        self._gaussian = GraphDiagonalGaussian(distribution.gaussian)
        self._shape = distribution.action_shape

    def choose(self, outputs: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Return the actions [B, ...] that outputs [B, 2 A] and noise make."""
        return self._squashed(self._gaussian.choose(outputs, noise))

    def choose_with_log_likelihood(
        self, outputs: tf.Tensor, noise: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the actions [B, ...] of ``choose``, and the logarithm of their density [B].

        Unlike ``log_likelihood`` it knows the draws that made the actions: actions at -1 and 1
        have their own likelihood, too.
        """
        draws = self._gaussian.choose(outputs, noise)
        slopes = tf.reduce_sum(_log_slope(draws), axis=-1)
        return self._squashed(draws), self._gaussian.log_likelihood(outputs, draws) - slopes

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the medians [..., *shape], from outputs [..., 2 A]."""
        return self._squashed(self._gaussian.mode(outputs))

    def log_likelihood(self, outputs: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Return the logarithm of the density [...] of actions [..., *shape]."""
        mean, _ = self._gaussian.mean_and_sigma(outputs)
        draws = self._draws(as_columns(actions, mean))
        slopes = tf.reduce_sum(_log_slope(draws), axis=-1)
        return self._gaussian.log_likelihood(outputs, draws) - slopes

    def entropy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the differential entropy in nats [...], from outputs [..., 2 A]."""
        mean, sigma = self._gaussian.mean_and_sigma(outputs)
        draws = mean[..., tf.newaxis] + sigma[..., tf.newaxis] * NORMAL_POINTS
        slopes = tf.reduce_sum(_log_slope(draws) * NORMAL_WEIGHTS, axis=[-2, -1])
        return self._gaussian.entropy(outputs) + slopes

    def kl(self, outputs_p: tf.Tensor, outputs_q: tf.Tensor) -> tf.Tensor:
        """Return ``KL(p || q)`` [...], from outputs [..., 2 A] of both."""
        return self._gaussian.kl(outputs_p, outputs_q)

    def _squashed(self, draws: tf.Tensor) -> tf.Tensor:
        """Return draws [..., A] as actions [..., *shape]."""
        return shaped(tf.tanh(draws), self._shape)

    def _draws(self, actions: tf.Tensor) -> tf.Tensor:
        """Return the draws that made actions, both [..., A]."""
        limit = 1 - BOUND_MARGIN
        return tf.atanh(tf.clip_by_value(actions, -limit, limit))


def _log_slope(draws: tf.Tensor) -> tf.Tensor:
    return 2.0 * (log(2) - draws - tf.nn.softplus(-2.0 * draws))

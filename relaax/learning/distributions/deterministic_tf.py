"""Continuous actions, one for each state, inside a TensorFlow graph; see ``deterministic``."""

import tensorflow as tf

from relaax.learning.distributions.deterministic import Deterministic
from relaax.learning.distributions.shapes_tf import shaped


class GraphDeterministic:
    """The actions that outputs [..., A] make."""

    def __init__(self, actions: Deterministic) -> None:
        self._actions = actions

    def choose(self, outputs: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Return the actions [B, ...] that outputs [B, A] and noise [B, A] make."""
        places = tf.tanh(outputs) + noise
        bounds = self._actions
        actions = bounds.middle + bounds.half * tf.clip_by_value(places, -1.0, 1.0)
        within = tf.clip_by_value(actions, bounds.low.ravel(), bounds.high.ravel())
        return shaped(within, bounds.action_shape)

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return the actions [..., *shape] of outputs [..., A]."""
        bounds = self._actions
        return shaped(bounds.middle + bounds.half * tf.tanh(outputs), bounds.action_shape)

"""The pieces of ACER's tests: losses with their gradients, and Retrace of several rollouts."""

import numpy as np
from numpy_returns import retrace_of

DISCOUNT, REGION, VALUE_WEIGHT = 0.9, 0.3, 0.4


def vectors_of(network):
    """Two policies that are not alike."""
    generator = np.random.default_rng(3)
    return [generator.normal(size=network.manifest.size).astype(np.float32) for _ in range(2)]


def numbers_of(method, largest, beta):
    """The numbers of the method; the largest weight and the entropy's are the test's own."""
    return method.Numbers(
        discount=DISCOUNT, largest_weight=largest, trust_region=REGION, entropy_beta=beta,
        value_loss_weight=VALUE_WEIGHT,
    )  # fmt: skip


def gradient_of(method, actions, rollouts, at):
    """The gradients of a loss by the variables ``at``, and the terms."""
    import tensorflow as tf

    from relaax.learning.gradients_tf import GraphRollouts

    at = {name: tf.constant(vector) for name, vector in at.items()}
    batch = GraphRollouts(*rollouts.columns())
    with tf.GradientTape() as tape:
        tape.watch(list(at.values()))
        loss, terms = actions.loss(batch, at)
    zero = tf.UnconnectedGradients.ZERO
    found = tape.gradient(loss, at, unconnected_gradients=zero)
    return {name: each.numpy() for name, each in found.items()}, terms


def targets_of(rollouts, values, chosen_values, traces):
    """Retrace targets [T, K] in numpy."""
    arrays = rollouts.rewards, rollouts.terminated, values, chosen_values, traces
    columns = range(rollouts.count)
    return np.stack([retrace_of(*(a[:, k] for a in arrays), DISCOUNT) for k in columns], axis=1)

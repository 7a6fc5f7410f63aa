"""The pieces of ACER's tests: losses with their gradients, and Retrace of several rollouts."""

from dataclasses import replace

import numpy as np
from numpy_network import NumpyNetwork
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


def continued(rollouts, burn_in):
    """The same, with a burn-in, and with live traces behind all ends of episodes but one."""
    arrays = {
        name: getattr(rollouts, name).copy()
        for name in ("starts", "terminated", "valid", "on_policy")
    }
    arrays["on_policy"][:, 1:] = arrays["valid"][:, 1:]
    for name in ("terminated", "valid", "on_policy"):
        arrays[name][:burn_in] = 0
    if burn_in:
        arrays["starts"][: burn_in + 1] = 0
        arrays["valid"][burn_in] = 1
    ends = arrays["terminated"][:-1] > 0
    assert (ends & (arrays["on_policy"][1:] > 0)).any()
    return replace(rollouts, **arrays)


def outputs_of(network, vector, rollouts, burn_in=0, before=None):
    """All heads' outputs [T + 1, K, ...] by name, by numpy; those of the burn-in are ``before``'s.

    So no gradient by ``vector`` flows into it.
    """
    parts = [(vector, slice(burn_in, None))]
    if burn_in:
        parts.insert(0, (before, slice(burn_in)))
    columns = []
    for column in range(rollouts.count):
        state, rows = rollouts.recurrent_state[:, column : column + 1], []
        for weights, some in parts:
            twin = NumpyNetwork(network, network.manifest.unpack(weights))
            continues = 1 - rollouts.starts[some, column]
            found, state = twin.forward(rollouts.observations[some, column], state, continues)
            rows.append(found)
        columns.append({name: np.concatenate([row[name] for row in rows]) for name in rows[0]})
    return {name: np.stack([each[name] for each in columns], axis=1) for name in columns[0]}


def chained(up, outputs, vector, step=1e-5):
    """The gradient of the sum of ``up`` times ``outputs(vector)``, by differences."""

    def total(at):
        found = outputs(at)
        return sum((part * found[name][: len(part)]).sum() for name, part in up.items())

    moves = step * np.eye(len(vector))
    vector = vector.astype(float)
    return np.array([(total(vector + m) - total(vector - m)) / (2 * step) for m in moves])

"""Adam inside a graph makes the same steps as in numpy."""

import numpy as np
import pytest
import tensorflow as tf

from relaax.learning.variables_tf import GraphAdam
from relaax.parameters.optimizers import Adam, AdamSettings

SETTINGS = [AdamSettings(), AdamSettings(beta1=0.5, beta2=0.9, epsilon=1e-3, weight_decay=0.1)]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("jit", [False, True])
def test_it_makes_the_steps_of_numpys_adam(settings, jit):
    random = np.random.default_rng(3)
    parameters = random.normal(size=20).astype(np.float32)
    variable = tf.Variable(parameters)
    ours, theirs = GraphAdam(20, settings, 0.01), Adam(20, settings)
    step = tf.function(lambda g: ours.apply(variable, g), jit_compile=jit, autograph=False)
    for _ in range(30):
        gradient = random.normal(size=20).astype(np.float32)
        step(tf.constant(gradient))
        theirs.apply(parameters, gradient, 0.01)
    np.testing.assert_allclose(variable.numpy(), parameters, rtol=2e-4, atol=1e-6)
    for name, slot in theirs.slots().items():
        np.testing.assert_allclose(ours.slots()[name], slot, rtol=1e-4, atol=1e-7)


def test_it_goes_on_from_its_slots():
    random = np.random.default_rng(4)
    gradients = random.normal(size=(6, 5)).astype(np.float32)
    whole, halves = tf.Variable(np.zeros(5, np.float32)), tf.Variable(np.zeros(5, np.float32))
    first = GraphAdam(5, AdamSettings(), 0.1)
    for gradient in gradients:
        first.apply(whole, gradient)
    second = GraphAdam(5, AdamSettings(), 0.1)
    for gradient in gradients[:3]:
        second.apply(halves, gradient)
    third = GraphAdam(5, AdamSettings(), 0.1)
    third.restore(second.slots())
    for gradient in gradients[3:]:
        third.apply(halves, gradient)
    np.testing.assert_array_equal(whole.numpy(), halves.numpy())

"""Actions between bounds: where float32 and the logarithm come to their limits."""

import numpy as np
import pytest
from distribution_cases import squashed

from relaax.learning.distributions import SquashedGaussian

pytestmark = pytest.mark.usefixtures("tensorflow")


@pytest.fixture(name="graph")
def _graph():
    from relaax.learning.distributions.graph_tf import graph_of

    return graph_of(SquashedGaussian((2,)))


def outputs_of(*rows):
    """Outputs [B, 4] of two means and two logarithms of sigma."""
    return np.array(rows, np.float32)


def test_no_action_is_beyond_its_bounds():
    distribution = SquashedGaussian((100,))
    noise = distribution.noise(np.random.default_rng(0), 1)
    for mean in (-1e3, 1e3):
        outputs = np.repeat([mean, 0], 100).astype(np.float32)[np.newaxis]
        np.testing.assert_array_equal(distribution.choose(outputs, noise)[0], np.sign(mean))


@pytest.mark.parametrize("place", [[-1, -1], [1, 1], [-1, 1]])
@pytest.mark.parametrize("mean", [-30, 0, 30])
def test_the_likelihood_of_an_action_at_a_bound_is_finite(graph, place, mean):
    import tensorflow as tf

    distribution = SquashedGaussian((2,))
    outputs = tf.constant(outputs_of([mean, -mean, -10, -10]))
    actions = np.array([place], np.float32)
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        likelihood = graph.log_likelihood(outputs, actions)
    assert np.isfinite(likelihood).all()
    assert np.isfinite(tape.gradient(likelihood, outputs)).all()
    assert np.isfinite(distribution.log_likelihood(outputs.numpy(), actions)).all()


def test_more_of_the_density_is_near_the_bound_that_the_mean_is_near():
    distribution = SquashedGaussian((2,))
    ends = np.array([[-1, -1], [1, 1]], np.float32)
    low, high = distribution.log_likelihood(outputs_of([3, 3, 0, 0], [3, 3, 0, 0]), ends)
    assert high > low


def entropy_of(distribution, outputs):
    from relaax.learning.distributions.graph_tf import graph_of

    return graph_of(distribution).entropy(outputs).numpy()


@pytest.mark.parametrize("sigma", [1e-3, 0.1, 0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("mean", [0.0, 0.7, -2.0, 5.0])
def test_the_entropy_is_right_to_a_thousandth_nat(mean, sigma):
    case = squashed((1,), "exp")
    outputs = np.array([[mean, np.log(sigma)]], np.float32)
    expected = case.entropy(outputs[0])
    np.testing.assert_allclose(entropy_of(case.distribution, outputs), [expected], atol=1e-3)


def test_the_entropy_is_highest_where_actions_are_nearly_uniform():
    """A bonus for entropy must not drive sigma to infinity and all actions to the bounds."""
    distribution = SquashedGaussian((1,), sigma="exp")
    sigmas = np.array([0.1, 0.4, 0.87, 2.0, 4.0], np.float32)
    outputs = np.stack([np.zeros(5), np.log(sigmas)], axis=1).astype(np.float32)
    entropy = entropy_of(distribution, outputs)
    assert entropy.argmax() == 2
    assert np.log(2) - 0.03 < entropy[2] < np.log(2)


def test_the_gradient_of_the_entropy_leads_there(graph):
    import tensorflow as tf

    outputs = tf.constant(outputs_of([1.5, -1.5, -2, 3]))
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        entropy = graph.entropy(outputs)
    mean, other, narrow, wide = tape.gradient(entropy, outputs).numpy()[0]
    assert mean < 0 < other
    assert wide < 0 < narrow

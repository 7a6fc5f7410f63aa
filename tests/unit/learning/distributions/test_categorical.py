"""The categorical distribution, in numpy and inside a graph."""

import numpy as np
import pytest

from relaax.learning.distributions import Categorical
from relaax.learning.distributions.categorical_tf import GraphCategorical

pytestmark = pytest.mark.usefixtures("tensorflow")

LOGITS = np.random.default_rng(3).normal(size=(6, 4)).astype(np.float32) * 2


def probabilities_of(logits):
    exponents = np.exp(logits.astype(np.float64))
    return exponents / exponents.sum(axis=-1, keepdims=True)


def test_actions_are_drawn_as_often_as_the_policy_says():
    distribution = Categorical(4)
    noise = distribution.noise(np.random.default_rng(1), 40_000)
    assert noise.dtype == np.float32
    actions = distribution.choose(np.repeat(LOGITS[:1], 40_000, axis=0), noise)
    expected = probabilities_of(LOGITS[0])
    np.testing.assert_allclose(np.bincount(actions, minlength=4) / 40_000, expected, atol=0.01)


def test_without_noise_the_most_probable_action_is_chosen():
    actions = Categorical(4).choose(LOGITS, np.zeros_like(LOGITS))
    assert actions.tolist() == LOGITS.argmax(axis=1).tolist()


def test_a_draw_of_zero_does_not_choose_what_is_improbable():
    """The logarithm of 0 would be infinite noise."""

    class Zeros:
        def standard_exponential(self, size, dtype):
            return np.zeros(size, dtype)

    assert np.isfinite(Categorical(4).noise(Zeros(), 3)).all()


@pytest.mark.parametrize("side", ["numpy", "graph"])
def test_the_log_likelihood_is_that_of_the_chosen_action(side):
    noise = Categorical(4).noise(np.random.default_rng(2), 6)
    distribution = Categorical(4) if side == "numpy" else GraphCategorical()
    actions = distribution.choose(LOGITS, noise)
    found = distribution.log_likelihood(LOGITS, actions)
    expected = np.log(probabilities_of(LOGITS)[np.arange(6), np.asarray(actions)])
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_both_sides_choose_the_same():
    noise = Categorical(4).noise(np.random.default_rng(2), 6)
    in_numpy = Categorical(4).choose(LOGITS, noise)
    in_graph = GraphCategorical().choose(LOGITS, noise)
    assert in_numpy.tolist() == in_graph.numpy().tolist()


def test_log_likelihood_and_entropy_take_any_number_of_dimensions():
    outputs, actions = LOGITS.reshape(2, 3, 4), np.array([[0, 1, 2], [3, 2, 1]], np.int32)
    probabilities = probabilities_of(outputs)
    chosen = np.take_along_axis(probabilities, actions[..., np.newaxis], axis=-1)[..., 0]
    found = GraphCategorical().log_likelihood(outputs, actions)
    np.testing.assert_allclose(found, np.log(chosen), rtol=1e-5)
    entropy = -(probabilities * np.log(probabilities)).sum(axis=-1)
    np.testing.assert_allclose(GraphCategorical().entropy(outputs), entropy, rtol=1e-5)


def test_logits_that_differ_much_stay_finite():
    far = np.array([[1e4, 0, -1e4, 0]], np.float32)
    distribution = Categorical(4)
    found = distribution.log_likelihood(far, distribution.choose(far, np.zeros_like(far)))
    assert found.tolist() == [0.0]
    assert GraphCategorical().entropy(far).numpy().tolist() == [0.0]

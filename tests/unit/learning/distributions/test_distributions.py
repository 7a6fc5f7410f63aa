"""What every distribution of actions promises, in numpy and inside a graph."""

from functools import cache

import numpy as np
import pytest
from distribution_cases import CASES

from relaax.learning.distributions import Categorical

pytestmark = pytest.mark.usefixtures("tensorflow")


@pytest.fixture(name="case", params=CASES)
def _case(request):
    return CASES[request.param]


@pytest.fixture(name="sides")
def _sides(case):
    """The distribution in numpy, in TensorFlow, and compiled with XLA, as functions."""
    from relaax.learning.distributions.graph_tf import graph_of

    graph = graph_of(case.distribution)
    return {
        "numpy": lambda name: getattr(case.distribution, name),
        "graph": lambda name: getattr(graph, name),
        "compiled": lambda name: _compiled(case.distribution, name),
    }


@cache
def _compiled(distribution, name):
    """A method, compiled once for all tests that have as many rows."""
    import tensorflow as tf

    from relaax.learning.distributions.graph_tf import graph_of

    return tf.function(getattr(graph_of(distribution), name), jit_compile=True, autograph=False)


def _by_scipy(case, name, *arguments):
    """What scipy says of each row, once for all sides: its integrals take long."""
    if (case, name) not in _SAID:
        _SAID[case, name] = [getattr(case, name)(*row) for row in zip(*arguments, strict=True)]
    return _SAID[case, name]


_SAID = {}

SIDES = pytest.mark.parametrize("side", ["numpy", "graph", "compiled"])
IN_GRAPHS = pytest.mark.parametrize("side", ["graph", "compiled"])


@SIDES
def test_the_likelihood_is_scipys(case, sides, side):
    outputs = case.outputs(1, 20)
    actions = case.actions(outputs)
    expected = _by_scipy(case, "log_likelihood", outputs, actions)
    found = np.asarray(sides[side]("log_likelihood")(outputs, actions))
    assert (found.shape, found.dtype) == ((20,), np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@IN_GRAPHS
def test_the_entropy_is_scipys_with_its_sign(case, sides, side):
    outputs = case.outputs(2, 20)
    found = np.asarray(sides[side]("entropy")(outputs))
    assert (found.shape, found.dtype) == ((20,), np.float32)
    np.testing.assert_allclose(found, _by_scipy(case, "entropy", outputs), rtol=1e-4, atol=5e-3)


@IN_GRAPHS
def test_the_divergence_is_scipys(case, sides, side):
    p, q = case.outputs(3, 6), case.outputs(4, 6)
    expected = _by_scipy(case, "kl", p, q)
    found = np.asarray(sides[side]("kl")(p, q))
    assert (found.shape, found.dtype) == ((6,), np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sides[side]("kl")(p, p), np.zeros(6), atol=1e-6)


@SIDES
def test_noise_of_zeros_chooses_the_mode(case, sides, side):
    outputs = case.outputs(5, 20)
    noise = np.zeros_like(case.distribution.noise(np.random.default_rng(0), 20))
    chosen = np.asarray(sides[side]("choose")(outputs, noise))
    assert chosen.shape == (20, *case.distribution.action_shape)
    np.testing.assert_array_equal(chosen, sides[side]("mode")(outputs))
    np.testing.assert_allclose(chosen, case.distribution.mode(outputs), rtol=1e-5, atol=1e-6)


def test_both_sides_choose_the_same(case, sides):
    outputs = case.outputs(6, 20)
    noise = case.distribution.noise(np.random.default_rng(1), 20)
    assert (noise.dtype, len(noise)) == (np.float32, 20)
    chosen = sides["numpy"]("choose")(outputs, noise)
    assert np.can_cast(case.distribution.action_dtype, chosen.dtype)
    for side in ("graph", "compiled"):
        of_graph = np.asarray(sides[side]("choose")(outputs, noise))
        assert of_graph.dtype == chosen.dtype
        np.testing.assert_allclose(of_graph, chosen, rtol=1e-5, atol=1e-5)


def test_a_graph_takes_any_number_of_dimensions(case, sides):
    outputs, others = case.outputs(8, 3, 4), case.outputs(9, 3, 4)
    actions = case.actions(outputs.reshape(12, -1))
    shaped = actions.reshape(3, 4, *actions.shape[1:])
    likelihoods = sides["numpy"]("log_likelihood")(outputs.reshape(12, -1), actions)
    found = sides["graph"]("log_likelihood")(outputs, shaped)
    np.testing.assert_allclose(found, likelihoods.reshape(3, 4), rtol=1e-3, atol=1e-4)
    for name, arguments in (("entropy", (outputs,)), ("kl", (outputs, others))):
        found = sides["graph"](name)(*arguments)
        in_rows = sides["graph"](name)(*(each.reshape(12, -1) for each in arguments))
        np.testing.assert_allclose(found, np.reshape(in_rows, (3, 4)), rtol=1e-5, atol=1e-6)


def test_no_action_is_chosen_for_no_observation(case):
    outputs, noise = case.outputs(1, 0), case.distribution.noise(np.random.default_rng(0), 0)
    actions = case.distribution.choose(outputs, noise)
    assert actions.shape == (0, *case.distribution.action_shape)
    assert case.distribution.log_likelihood(outputs, actions).shape == (0,)


def test_outputs_that_are_large_make_nothing_that_is_not_a_number(case, sides):
    """A policy that has become sure, and one that is far from where it acted."""
    import tensorflow as tf

    signs = np.sign(case.outputs(10, 8))
    if "Gaussian" in type(case.distribution).__name__:
        outputs = np.concatenate(np.split(signs, 2, axis=1), axis=1) * np.float32(20)
    else:
        outputs = signs * np.float32(1e4)
    actions = case.actions(outputs)
    value = sides["numpy"]("log_likelihood")(outputs, actions)
    parameters = tf.constant(outputs)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(parameters)
        likelihood = sides["graph"]("log_likelihood")(parameters, actions)
        entropy = sides["graph"]("entropy")(parameters)
    gradients = [tape.gradient(what, parameters) for what in (likelihood, entropy)]
    for each in (value, likelihood, entropy, *gradients):
        assert np.isfinite(each).all()


def test_a_distribution_of_another_library_has_no_counterpart():
    from relaax.learning.distributions.graph_tf import graph_of

    class Mine:
        outputs = 1

    with pytest.raises(ValueError, match=r"Mine has no TensorFlow counterpart.*GraphDistribution"):
        graph_of(Mine())


def test_a_multi_discrete_choice_needs_actions():
    from relaax.learning.distributions import MultiDiscrete

    for nvec in ((), (3, 0)):
        with pytest.raises(ValueError, match="nvec must be one or more numbers of actions"):
            MultiDiscrete(nvec)


def test_equal_distributions_are_equal():
    assert Categorical(3) == Categorical(3) != Categorical(4)

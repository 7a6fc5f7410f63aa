"""L-BFGS on functions whose minima are known, and beside scipy's."""

import importlib

import numpy as np
import pytest
from scipy.optimize import fmin_l_bfgs_b, rosen, rosen_der


@pytest.fixture(name="lbfgs", scope="module")
def _lbfgs(trpo):
    return importlib.import_module(f"{trpo.__name__}.lbfgs_tf")


@pytest.fixture(name="minimized")
def _minimized(lbfgs):
    import tensorflow as tf

    def run(function, start, iterations):
        graph = tf.function(lambda at: lbfgs.minimized(function, at, iterations), autograph=False)
        return graph(tf.constant(start, tf.float32)).numpy()

    return run


def rosenbrock(at):
    import tensorflow as tf

    curved = tf.square(at[1:] - tf.square(at[:-1]))
    return tf.reduce_sum(100.0 * curved + tf.square(1.0 - at[:-1]))


def quadratic(size=30, seed=3):
    """``x A x / 2 - b x`` with eigenvalues from 0.1 to 10, and where it is least."""
    import tensorflow as tf

    random = np.random.default_rng(seed)
    axes = np.linalg.qr(random.normal(size=(size, size)))[0]
    matrix = axes @ np.diag(np.geomspace(0.1, 10, size)) @ axes.T
    linear = random.normal(size=size)

    def function(at):
        along = tf.linalg.matvec(tf.constant(matrix, tf.float32), at)
        return tf.reduce_sum(at * (along / 2.0 - tf.constant(linear, tf.float32)))

    return function, np.linalg.solve(matrix, linear)


def test_it_finds_the_minimum_of_a_quadratic_function(minimized):
    function, least = quadratic()
    np.testing.assert_allclose(minimized(function, np.zeros(30), 100), least, atol=1e-2)


@pytest.mark.parametrize("start", [[-1.2, 1.0], [1.3, 0.7, 0.8, 1.9, 1.2]])
def test_it_finds_the_end_of_rosenbrocks_valley(minimized, start):
    np.testing.assert_allclose(minimized(rosenbrock, start, 100), np.ones(len(start)), atol=5e-3)


@pytest.mark.parametrize("iterations", [5, 10, 15])
def test_after_so_many_iterations_it_is_where_scipy_is(minimized, iterations):
    start = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
    theirs = fmin_l_bfgs_b(rosen, start, rosen_der, maxiter=iterations)[1]
    assert theirs > 1e-2
    assert rosen(minimized(rosenbrock, start, iterations)) == pytest.approx(theirs, rel=0.05)


def test_each_iteration_goes_down(minimized):
    start = np.array([-1.2, 1.0])
    values = [rosen(minimized(rosenbrock, start, iterations)) for iterations in range(12)]
    assert values[0] == pytest.approx(rosen(start))
    assert (np.diff(values) < 0).all()


def test_at_a_minimum_it_stays(minimized):
    np.testing.assert_array_equal(minimized(rosenbrock, np.ones(4), 5), np.ones(4))


def test_where_the_function_is_no_number_it_comes_back(minimized):
    import tensorflow as tf

    def logarithm(at):
        return tf.reduce_sum(at - tf.math.log(at))  # nan left of 0, least at 1

    np.testing.assert_allclose(minimized(logarithm, [0.05, 4.0], 50), np.ones(2), atol=1e-3)


def test_parameters_without_an_effect_stay(minimized):
    found = minimized(lambda at: rosenbrock(at[:2]), [-1.2, 1.0, 7.0], 60)
    np.testing.assert_allclose(found, [1.0, 1.0, 7.0], atol=5e-3)


def test_the_model_of_the_curvature_is_that_of_bfgs_written_out(lbfgs):
    """Equation (6.17) of Nocedal and Wright, one step after the other, beginning with (7.20)."""
    random = np.random.default_rng(0)
    size, count = 6, 4
    steps = random.normal(size=(count, size))
    scales = random.uniform(0.5, 2.0, size)
    changes = steps * scales  # of a diagonal Hessian
    inverse = np.eye(size) * (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for s, y in zip(steps, changes, strict=True):
        away = np.eye(size) - np.outer(s, y) / (s @ y)
        inverse = away @ inverse @ away.T + np.outer(s, s) / (s @ y)
    missing = ((lbfgs.REMEMBERED - count, 0), (0, 0))
    history = lbfgs.History(
        np.pad(steps, missing).astype(np.float32),
        np.pad(changes, missing).astype(np.float32),
        np.pad(1 / (steps * changes).sum(1), missing[0]).astype(np.float32),
    )
    vector = random.normal(size=size).astype(np.float32)
    found = lbfgs.times_inverse_hessian(history, vector).numpy()
    np.testing.assert_allclose(found, inverse @ vector, rtol=1e-4, atol=1e-5)


def test_a_step_along_which_the_slope_falls_is_not_remembered(lbfgs):
    import tensorflow as tf

    rows = tf.zeros([lbfgs.REMEMBERED, 2])
    empty = lbfgs.History(rows, rows, tf.zeros([lbfgs.REMEMBERED]))
    old = lbfgs.Point(tf.zeros(2), tf.constant(1.0), tf.constant([-1.0, 0.0]))
    steeper = lbfgs.Point(tf.constant([1.0, 0.0]), tf.constant(0.0), tf.constant([-2.0, 0.0]))
    flatter = lbfgs.Point(tf.constant([1.0, 0.0]), tf.constant(0.0), tf.constant([-0.5, 0.0]))
    assert not lbfgs.extended(empty, old, steeper).inverse.numpy().any()
    assert lbfgs.extended(empty, old, flatter).inverse.numpy()[-1] == pytest.approx(2.0)

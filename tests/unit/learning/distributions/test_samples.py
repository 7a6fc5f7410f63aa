"""Draws have the frequencies that each distribution says; with a fixed seed."""

import numpy as np
import pytest
from distribution_cases import CASES, normals
from scipy import special, stats

DRAWS = 40_000

#: A right test would fail so seldom by chance.
LEAST_P = 1e-3


def drawn(case, outputs, count=DRAWS):
    """Draws of one row of outputs."""
    distribution = case.distribution
    noise = distribution.noise(np.random.default_rng(5), count)
    return distribution.choose(np.repeat(outputs[np.newaxis], count, axis=0), noise)


def assert_frequencies(draws, probabilities):
    counts = np.bincount(draws, minlength=len(probabilities))
    assert stats.chisquare(counts, probabilities * len(draws)).pvalue > LEAST_P


def test_a_categorical_draws_its_probabilities():
    case = CASES["categorical"]
    outputs = case.outputs(1)
    assert_frequencies(drawn(case, outputs), special.softmax(outputs.astype(float)))


def test_a_multi_discrete_draws_each_choice_by_itself():
    """All combinations, in a table: so the choices are independent, too."""
    case = CASES["multi-discrete"]
    outputs = case.outputs(2, scale=0.7)
    first, second, third = drawn(case, outputs).T
    a, b, c = (special.softmax(part.astype(float)) for part in np.split(outputs, [3, 5]))
    joint = np.einsum("a,b,c->abc", a, b, c).ravel()
    assert_frequencies((first * 2 + second) * 5 + third, joint)


def test_bits_are_drawn_one_by_one():
    case = CASES["bernoulli"]
    outputs = case.outputs(3, scale=0.7)
    draws = drawn(case, outputs)
    assert set(np.unique(draws)) == {0, 1}
    ones = special.expit(outputs.astype(float))
    joint = np.array([1.0])
    for p in ones:
        joint = np.concatenate([joint * (1 - p), joint * p])
    assert_frequencies(draws.astype(int) @ (1 << np.arange(5)), joint)


@pytest.mark.parametrize("name", ["gaussian", "gaussian, a logarithm", "gaussian of a number"])
def test_a_gaussian_draws_its_means_and_deviations(name):
    case = CASES[name]
    outputs = case.outputs(4)
    columns = drawn(case, outputs).reshape(DRAWS, -1).T
    for column, normal in zip(
        columns, normals(outputs, case.distribution.sigma, 1e-3), strict=True
    ):
        assert stats.kstest(column, normal.cdf).pvalue > LEAST_P


def test_a_squashed_gaussian_draws_between_its_bounds():
    case = CASES["squashed"]
    outputs = case.outputs(6, scale=0.8)
    draws = drawn(case, outputs)
    for column, normal in zip(draws.T, normals(outputs, "softplus", 1e-3), strict=True):

        def cdf(a, normal=normal):
            return normal.cdf(np.arctanh(a))

        assert stats.kstest(column.astype(float), cdf).pvalue > LEAST_P

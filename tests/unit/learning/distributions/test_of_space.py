"""The distribution of a space's actions."""

import json

import numpy as np
import pytest

from relaax.learning.distributions import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    MultiDiscrete,
    SquashedGaussian,
    distribution_of,
)
from relaax.spaces import box, discrete


@pytest.mark.parametrize(
    ("space", "distribution"),
    [
        (discrete(3), Categorical(3)),
        ({"type": "MultiDiscrete", "nvec": [3, 2]}, MultiDiscrete((3, 2))),
        ({"type": "MultiBinary", "shape": [5]}, Bernoulli((5,))),
        ({"type": "MultiBinary", "shape": [2, 2]}, Bernoulli((2, 2))),
        (box("float32", (4,)), DiagonalGaussian((4,))),
        (box("float32", ()), DiagonalGaussian(())),
        ({**box("float32", (2,)), "low": -1, "high": None}, DiagonalGaussian((2,))),
        ({**box("float32", (2,)), "low": [-1, -1], "high": ["inf", 1]}, DiagonalGaussian((2,))),
    ],
)
def test_a_space_has_a_distribution(space, distribution):
    found = distribution_of(json.loads(json.dumps(space)))
    assert found == distribution
    assert found.action_shape == distribution.action_shape


@pytest.mark.parametrize("bounds", [(-1, 2), ([[-1], [-1]], [[2], [2]])])
def test_an_array_with_finite_bounds_is_squashed(bounds):
    space = {**box("float32", (2, 1)), "low": bounds[0], "high": bounds[1]}
    found = distribution_of(space, sigma="exp")
    assert isinstance(found, SquashedGaussian)
    assert (found.action_shape, found.gaussian.sigma) == ((2, 1), "exp")


def test_or_not_where_the_environment_shall_clip_actions():
    space = {**box("float32", (2,)), "low": -1, "high": 1}
    assert distribution_of(space, squashes=False) == DiagonalGaussian((2,))


@pytest.mark.parametrize(
    "space",
    [
        {"type": "Dict", "spaces": {"arm": box("float32", (2,))}},
        {"type": "MultiDiscrete", "nvec": [[2, 3], [4, 5]]},
        {"type": "MultiBinary", "shape": []},
        {"type": "Text"},
        discrete(0),
        box("float32", (0,)),
    ],
)
def test_any_other_space_is_refused_with_what_to_do(space):
    with pytest.raises(ValueError, match="have no distribution here: use Discrete, MultiDiscrete"):
        distribution_of(space)


def test_bounds_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"low must be one number, or lists of numbers of shape"):
        distribution_of({**box("float32", (3,)), "low": [0, 0], "high": [1, 1, 1]})


def test_the_library_needs_numpy_alone_to_choose():
    found = distribution_of({"type": "MultiDiscrete", "nvec": [3, 2]})
    noise = found.noise(np.random.default_rng(0), 4)
    assert found.choose(np.zeros((4, 5), np.float32), noise).shape == (4, 2)

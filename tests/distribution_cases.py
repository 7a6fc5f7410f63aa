"""Every distribution of actions, beside what scipy says of it in float64."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from scipy import integrate, special, stats

from relaax.learning.distributions import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    MultiDiscrete,
    SquashedGaussian,
)


@dataclass(frozen=True)
class Case:
    """A distribution, and its likelihood, entropy and KL for outputs of one action."""

    distribution: Any
    log_likelihood: Callable[[Any, Any], float]
    entropy: Callable[[Any], float]
    kl: Callable[[Any, Any], float]
    #: Of random outputs.
    scale: float = 1.5

    def outputs(self, seed, *counts, scale=None):
        """Random outputs [*counts, N]."""
        random = np.random.default_rng(seed)
        shape = (*counts, self.distribution.outputs)
        return ((scale or self.scale) * random.normal(size=shape)).astype(np.float32)

    def actions(self, outputs, seed=7):
        """Random actions [B, ...] of outputs [B, N], in the type that rollouts keep."""
        noise = self.distribution.noise(np.random.default_rng(seed), len(outputs))
        return self.distribution.choose(outputs, noise).astype(self.distribution.action_dtype)


def categorical(sizes, distribution):
    """One or several choices of these sizes."""
    bounds = list(pairwise(accumulate(sizes, initial=0)))

    def parts(outputs):
        return [special.softmax(outputs[begin:end].astype(float)) for begin, end in bounds]

    def log_likelihood(outputs, action):
        chosen = zip(parts(outputs), np.atleast_1d(action), strict=True)
        return sum(
            stats.rv_discrete(values=(range(len(p)), p)).logpmf(number) for p, number in chosen
        )

    return Case(
        distribution,
        log_likelihood,
        lambda outputs: sum(stats.entropy(p) for p in parts(outputs)),
        lambda p, q: sum(stats.entropy(*two) for two in zip(parts(p), parts(q), strict=True)),
    )


def bernoulli(shape):
    def ones(outputs):
        return special.expit(outputs.astype(float))

    def kl(p, q):
        p, q = ones(p), ones(q)
        return (special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)).sum()

    return Case(
        Bernoulli(shape),
        lambda outputs, action: stats.bernoulli(ones(outputs)).logpmf(action.ravel()).sum(),
        lambda outputs: stats.bernoulli(ones(outputs)).entropy().sum(),
        kl,
    )


def normals(outputs, sigma, least_sigma):
    """The normal distributions that outputs make."""
    mean, raw = np.split(outputs.astype(float), 2)
    return [
        stats.norm(*both)
        for both in zip(
            mean,
            np.exp(raw) if sigma == "exp" else np.log1p(np.exp(raw)) + least_sigma,
            strict=True,
        )
    ]


def mean_of(function, normal):
    """The mean of a function of a normal variable: trapezoids, since no density is at the ends."""
    u = normal.mean() + normal.std() * np.linspace(-12, 12, 4001)
    return integrate.trapezoid(normal.pdf(u) * function(u), u)


def normal_kl(p, q):
    return sum(
        mean_of(lambda u, one=one, other=other: one.logpdf(u) - other.logpdf(u), one)
        for one, other in zip(p, q, strict=True)
    )


def gaussian(shape, sigma, least_sigma=1e-3):
    def of(outputs):
        return normals(outputs, sigma, least_sigma)

    return Case(
        DiagonalGaussian(shape, sigma, least_sigma),
        lambda outputs, action: sum(
            normal.logpdf(number)
            for normal, number in zip(of(outputs), np.ravel(action), strict=True)
        ),
        lambda outputs: sum(normal.entropy() for normal in of(outputs)),
        lambda p, q: normal_kl(of(p), of(q)),
    )


def log_slope(u):
    near = np.log1p(-(np.tanh(np.clip(u, -15, 15)) ** 2))
    return np.where(np.abs(u) < 15, near, np.log(4) - 2 * np.abs(u))


def squashed(shape, sigma="softplus"):
    def log_likelihood(outputs, action):
        draws = np.arctanh(np.ravel(action).astype(float))
        columns = zip(normals(outputs, sigma, 1e-3), draws, strict=True)
        return sum(one.logpdf(u) - log_slope(u) for one, u in columns)

    def entropy(outputs):
        columns = normals(outputs, sigma, 1e-3)
        return sum(one.entropy() + mean_of(log_slope, one) for one in columns)

    return Case(
        SquashedGaussian(shape, sigma),
        log_likelihood,
        entropy,
        lambda p, q: normal_kl(normals(p, sigma, 1e-3), normals(q, sigma, 1e-3)),
        # Larger ones have actions that float32 cannot tell from the bounds.
        scale=0.7 if sigma == "exp" else 1.5,
    )


CASES = {
    "categorical": categorical([4], Categorical(4)),
    "multi-discrete": categorical([3, 2, 5], MultiDiscrete((3, 2, 5))),
    "bernoulli": bernoulli((5,)),
    "bernoulli of two dimensions": bernoulli((2, 3)),
    "gaussian": gaussian((3,), "softplus"),
    "gaussian, a larger floor": gaussian((3,), "softplus", 0.5),
    "gaussian, a logarithm": gaussian((3,), "exp"),
    "gaussian of two dimensions": gaussian((2, 2), "softplus"),
    "gaussian of a number": gaussian((), "softplus"),
    "squashed": squashed((2,)),
    "squashed, a logarithm": squashed((2,), "exp"),
    "squashed, of two dimensions": squashed((2, 1)),
}

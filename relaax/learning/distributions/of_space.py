"""Which distribution actions of a space have."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.distributions.base import Distribution
from relaax.learning.distributions.bernoulli import Bernoulli
from relaax.learning.distributions.categorical import Categorical
from relaax.learning.distributions.gaussian import DiagonalGaussian, SigmaFunction
from relaax.learning.distributions.multi_discrete import MultiDiscrete
from relaax.learning.distributions.squashed_gaussian import SquashedGaussian
from relaax.spaces import Space, written


def distribution_of(
    space: Space, squashes: bool = True, sigma: SigmaFunction = "softplus"
) -> Distribution:
    """Return the distribution of actions of ``space``, a space as JSON (``relaax.spaces``).

    - ``Discrete``: ``Categorical``; ``MultiDiscrete``: ``MultiDiscrete``; ``MultiBinary``:
      ``Bernoulli``.
    - ``Box`` whose members ``low`` and ``high`` (numbers, or nested lists of them) are there and
      all finite: ``SquashedGaussian``, unless ``squashes`` is False. Any other ``Box``:
      ``DiagonalGaussian``, which knows no bounds.

    ValueError for all other spaces, and for a space without an action.
    """
    match space:
        case {"type": "Discrete", "n": int(n)} if n > 0:
            return Categorical(n)
        case {"type": "MultiDiscrete", "nvec": list(nvec)} if _are_positive(nvec):
            return MultiDiscrete(tuple(nvec))
        case {"type": "MultiBinary", "shape": list(shape)} if _are_positive(shape):
            return Bernoulli(tuple(shape))
        case {"type": "Box", "shape": list(shape)} if _are_positive(shape) or not shape:
            low, high = (_bounds(space, name, tuple(shape)) for name in ("low", "high"))
            if squashes and np.isfinite(low).all() and np.isfinite(high).all():
                return SquashedGaussian(low, high, sigma)
            return DiagonalGaussian(tuple(shape), sigma)
    raise ValueError(
        f"actions of {written(space)} have no distribution here: use Discrete, MultiDiscrete with "
        "a flat nvec, MultiBinary or Box, one of them for all that an action says, or write a "
        "Distribution of your own"
    )


def _are_positive(sizes: Sequence[Any]) -> bool:
    return len(sizes) > 0 and all(isinstance(size, int) and size > 0 for size in sizes)


def _bounds(space: Space, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Return the bounds ``name`` [*shape], not finite where there are none."""
    bounds = np.array(space.get(name), np.float32)  # None becomes NaN
    if bounds.size == prod(shape):
        return bounds.reshape(shape)
    if bounds.size == 1:
        return np.full(shape, bounds.item(), np.float32)
    raise ValueError(
        f"{name} of {written(space)} must be one number, or an array of shape {list(shape)}"
    )

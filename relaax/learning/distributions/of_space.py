"""Which distribution actions of a space have."""

from collections.abc import Sequence
from typing import Any

from relaax.learning.action_units import ActionUnits
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

    Actions of a ``Box`` are in the policy's units: ``ActionUnits.of(space)`` converts them.
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
            units = ActionUnits.of(space)
            if squashes and units is not None and units.is_bounded.all():
                return SquashedGaussian(tuple(shape), sigma)
            return DiagonalGaussian(tuple(shape), sigma)
    raise ValueError(
        f"actions of {written(space)} have no distribution here: use Discrete, MultiDiscrete with "
        "a flat nvec, MultiBinary or Box, one of them for all that an action says, or write a "
        "Distribution of your own"
    )


def _are_positive(sizes: Sequence[Any]) -> bool:
    return len(sizes) > 0 and all(isinstance(size, int) and size > 0 for size in sizes)

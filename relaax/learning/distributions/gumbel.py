"""Gumbel's and the logistic distribution: the noise that makes discrete choices."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

#: A float32 draw is 0 once in 10**7, and its logarithm would choose any action, however improbable.
_LEAST_EXPONENTIAL = np.float32(1e-8)


def gumbel_noise(random: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Draw independent standard Gumbel values, float32, of at most 18.5."""
    # The negative logarithm of an exponential variable has Gumbel's distribution.
    exponential = random.standard_exponential(shape, dtype=np.float32)
    gumbel: FloatArray = -np.log(np.maximum(exponential, _LEAST_EXPONENTIAL))
    return gumbel


def logistic_noise(random: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Draw independent standard logistic values, float32: differences of two Gumbel values."""
    return gumbel_noise(random, shape) - gumbel_noise(random, shape)

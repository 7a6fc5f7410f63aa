"""Arrays with room for more entries."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def zero_padded(array: Array, size: int, axis: int) -> Array:
    """Return ``array`` with zeros behind it up to ``size`` entries along ``axis``, or as it is."""
    if array.shape[axis] >= size:
        return array
    shape = list(array.shape)
    shape[axis] = size
    padded = np.zeros(shape, array.dtype)
    padded[(slice(None),) * axis + (slice(array.shape[axis]),)] = array
    return padded


def padded_size(count: int) -> int:
    """Return the smallest power of two that holds ``count`` entries."""
    return 1 << (count - 1).bit_length()

"""Arrays with room for more entries."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.array_bytes import address_of

Array = npt.NDArray[Any]

#: What lies at a multiple of this is used by TensorFlow where it lies; all else is copied first.
ALIGNMENT_BYTES = 64


def zero_padded(array: Array, size: int, axis: int) -> Array:
    """Return ``array`` with zeros behind it up to ``size`` entries along ``axis``, or as it is."""
    if array.shape[axis] >= size:
        return array
    shape = list(array.shape)
    shape[axis] = size
    padded = np.zeros(shape, array.dtype)
    padded[(slice(None),) * axis + (slice(array.shape[axis]),)] = array
    return padded


def padded_batch(array: Array, size: int) -> Array:
    """Return ``array`` [B, ...] with zeros behind it up to ``size`` rows, aligned; or as it is."""
    count = len(array)
    if count >= size:
        return array
    padded = aligned_empty((size, *array.shape[1:]), array.dtype)
    padded[:count] = array
    padded[count:] = 0
    return padded


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return an array whose first byte lies where TensorFlow wants it; its values are arbitrary."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    memory = np.empty(size + ALIGNMENT_BYTES, np.uint8)
    begin = -address_of(memory) % ALIGNMENT_BYTES
    return memory[begin : begin + size].view(kind).reshape(shape)


def padded_size(count: int) -> int:
    """Return the smallest power of two that holds ``count`` entries."""
    return 1 << (count - 1).bit_length()

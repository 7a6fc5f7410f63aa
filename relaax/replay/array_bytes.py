"""Arrays one after another in bytes, without gaps, little-endian."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
#: The type of an array's numbers, and its shape.
Form = tuple[np.dtype[Any], tuple[int, ...]]


def written(arrays: Iterable[Array]) -> list[memoryview]:
    """Return the bytes of arrays, of which those that are contiguous are not copied."""
    return [plain(array).reshape(-1).view(np.uint8).data for array in arrays]


def size_of(forms: Iterable[Form]) -> int:
    """Return how many bytes arrays of these forms take."""
    return sum(_bytes_of(form) for form in forms)


def read(data: memoryview, forms: Sequence[Form]) -> list[Array]:
    """Return read-only arrays that lie in ``data``; ValueError if they are not all of it."""
    expected = size_of(forms)
    if len(data) != expected:
        raise ValueError(f"arrays of {expected} bytes are announced, and {len(data)} came")
    arrays, begin = [], 0
    for dtype, shape in forms:
        end = begin + _bytes_of((dtype, shape))
        arrays.append(np.frombuffer(data[begin:end], dtype).reshape(shape))
        begin = end
    return arrays


def plain(array: Array) -> Array:
    """Return an array as it is sent, contiguous and little-endian; itself if it is so."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def _bytes_of(form: Form) -> int:
    dtype, shape = form
    return dtype.itemsize * math.prod(shape)

"""Arrays one behind another in given memory."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.array_bytes import Form, plain, size_of
from relaax.replay.segments.segment import TOKEN_BYTES, Bytes

Array = npt.NDArray[Any]

#: Arrays begin at multiples of it: TensorFlow need not copy those that do.
ALIGNMENT = 64


class NoRoom(Exception):
    """The memory is too small."""


class Room:
    """Hands out arrays in ``memory``, behind its token."""

    def __init__(self, memory: Bytes) -> None:
        self._memory = memory
        self._end = TOKEN_BYTES

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], /) -> Array:
        """Return an array of any content, which lies elsewhere if there is no room; see Empty."""
        try:
            return self._next(shape, dtype)
        except NoRoom:
            return np.empty(shape, dtype)

    def offset_of(self, array: Array) -> int:
        """Return where ``array`` begins in the memory; it is copied there if it lies elsewhere.

        NoRoom where it does not fit.
        """
        array = plain(array)
        offset = _address(array) - _address(self._memory)
        if 0 <= offset <= len(self._memory) - array.nbytes:
            return offset
        copy = self._next(array.shape, array.dtype)
        copy[...] = array
        return _address(copy) - _address(self._memory)

    def _next(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        begin = _aligned(self._end)
        end = begin + size_of([(dtype, shape)])
        if end > len(self._memory):
            raise NoRoom
        self._end = end
        return self._memory[begin:end].view(dtype).reshape(shape)


def room_for(forms: Iterable[Form]) -> int:
    """Return how many bytes of memory have room for arrays of these forms."""
    end = TOKEN_BYTES
    for form in forms:
        end = _aligned(end) + size_of([form])
    return end


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address

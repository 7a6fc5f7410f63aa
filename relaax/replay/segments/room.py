"""Arrays one behind another in given memory."""

from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.array_bytes import Place, address_of, extent_of, size_of
from relaax.replay.segments.segment import TOKEN_BYTES, Bytes

Array = npt.NDArray[Any]

#: Arrays begin at multiples of it: TensorFlow need not copy them.
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

    def place_of(self, array: Array) -> Place:
        """Return where ``array`` lies in the memory; it is copied there if it lies elsewhere.

        NoRoom where it does not fit.
        """
        offset = address_of(array) - address_of(self._memory)
        if 0 <= offset <= len(self._memory) - extent_of(array):
            return Place(offset, () if array.flags.c_contiguous else array.strides)
        copy = self._next(array.shape, array.dtype.newbyteorder("<"))
        copy[...] = array
        return Place(address_of(copy) - address_of(self._memory))

    def _next(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        begin = _aligned(self._end)
        end = begin + size_of([(dtype, shape)])
        if end > len(self._memory):
            raise NoRoom
        self._end = end
        return self._memory[begin:end].view(dtype).reshape(shape)


def room_for(size: int, arrays: int) -> int:
    """Return how many bytes of memory have room for so many arrays of ``size`` bytes together."""
    return TOKEN_BYTES + arrays * ALIGNMENT + size


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT

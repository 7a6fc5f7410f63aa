"""What messages that differ in their rewards, and in one array, have in common."""

from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.protocol.binary.arrays import Block, encode_block
from relaax.protocol.connection import Payload

Array = npt.NDArray[Any]


class Pattern:
    """What plain messages about the same environments and one kind of array have in common."""

    def __init__(self, head: bytes, between: int, array: Array) -> None:
        #: Up to the rewards.
        self.head = head
        #: From the rewards to the array's own bytes.
        header, *_ = _pieces(array)
        self.block = header
        self.block_at = len(head) + between
        self.array_at = self.block_at + len(header)
        self.array_end = self.array_at + array.nbytes
        self.dtype, self.shape, self.size = array.dtype, array.shape, array.size

    def fits(self, array: Any) -> bool:
        """Return whether ``array`` is of the same kind."""
        return type(array) is np.ndarray and array.shape == self.shape and array.dtype == self.dtype

    def matches(self, payload: Payload) -> bool:
        """Return whether a payload begins, and goes on, like the others."""
        return (
            payload[: len(self.head)] == self.head
            and payload[self.block_at : self.array_at] == self.block
        )

    def array_in(self, payload: Payload) -> Array:
        """Return the array in a payload that matches."""
        return np.frombuffer(payload, self.dtype, self.size, self.array_at).reshape(self.shape)


def _pieces(array: Array) -> list[Any]:
    block: Block = array
    return encode_block(block)


def is_little_endian(array: Any) -> bool:
    """Return whether ``array`` is one whose bytes can be sent as they are."""
    return isinstance(array, np.ndarray) and array.dtype.newbyteorder("<") == array.dtype

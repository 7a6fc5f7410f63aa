"""What plain messages about the same environments have in common when arrays have names."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from relaax.protocol.binary.arrays import encode_block
from relaax.protocol.connection import Payload

Array = npt.NDArray[Any]


class _Part(NamedTuple):
    """One array: what is said about it, where that and its numbers begin, and what they are."""

    name: str
    heading: bytes
    heading_at: int
    array_at: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    size: int


class NamedPattern:
    """Like the pattern of one array in ``codec``, for several by name.

    head: the message up to the rewards. between: how many bytes the rewards have.
    """

    def __init__(self, head: bytes, between: int, arrays: dict[str, Array]) -> None:
        self.head = head
        self._parts: list[_Part] = []
        at = len(head) + between
        headings = [bytes(heading) for heading in encode_block(arrays)[::2]]
        for (name, array), heading in zip(arrays.items(), headings, strict=True):
            array_at = at + len(heading)
            self._parts.append(
                _Part(name, heading, at, array_at, array.dtype, array.shape, array.size)
            )
            at = array_at + array.nbytes
        self.array_end = at
        self._names = frozenset(arrays)

    def fits(self, arrays: Any) -> bool:
        """Return whether ``arrays`` are of the same kinds and names, in any order."""
        return (
            isinstance(arrays, dict)
            and arrays.keys() == self._names
            and all(
                arrays[part.name].shape == part.shape and arrays[part.name].dtype == part.dtype
                for part in self._parts
            )
        )

    def pieces(self, arrays: Any) -> list[bytes]:
        """Return what a message that fits holds behind its rewards."""
        pieces: list[bytes] = []
        for part in self._parts:
            pieces += (part.heading, arrays[part.name].tobytes())
        return pieces

    def matches(self, payload: Payload) -> bool:
        """Return whether a payload begins, and goes on, like the others."""
        return payload[: len(self.head)] == self.head and all(
            payload[part.heading_at : part.array_at] == part.heading for part in self._parts
        )

    def array_in(self, payload: Payload) -> dict[str, Array]:
        """Return the arrays in a payload that matches, as views."""
        return {
            part.name: np.frombuffer(payload, part.dtype, part.size, part.array_at).reshape(
                part.shape
            )
            for part in self._parts
        }

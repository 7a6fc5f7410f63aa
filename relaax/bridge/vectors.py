"""Messages that carry a vector, written and read without protobuf's copies of it.

Generated code copies a field of bytes twice on its way into a message and twice on its way out,
which takes longer than sending it. Here it is put behind the other fields' bytes, and found among
them as a view. The bytes are protobuf's own (https://protobuf.dev/programming-guides/encoding/):
fields may come in any order, and generated code at the other end understands them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from relaax.bridge import bridge_pb2

Fields = TypeVar("Fields", bound=Message)

_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5


@dataclass(frozen=True)
class WithVector(Generic[Fields]):
    """A message's other fields, and its vector."""

    fields: Fields
    #: float32 [size]; None where the message has none.
    vector: npt.NDArray[np.float32] | None


class VectorCodec(Generic[Fields]):
    """Encodes and decodes a type of message whose field ``vector`` is little-endian float32."""

    def __init__(self, message_type: type[Fields]) -> None:
        self._message_type = message_type
        number = message_type.DESCRIPTOR.fields_by_name["vector"].number
        self._tag = number << 3 | _SIZED

    def encode(self, message: WithVector[Fields]) -> bytes:
        """Return the message's bytes."""
        fields = message.fields.SerializeToString()
        if message.vector is None:
            return fields
        vector = np.ascontiguousarray(message.vector, "<f4")
        return b"".join((fields, _varint(self._tag), _varint(vector.nbytes), vector.data))

    def decode(self, data: bytes) -> WithVector[Fields]:
        """Return the message, its vector a view of ``data``; ValueError for what is none."""
        vector, others = None, []
        for tag, whole, value in _parts(memoryview(data)):
            if tag == self._tag:
                vector = value
            else:
                others.append(whole)
        fields = self._message_type.FromString(b"".join(others))
        if vector is None:
            return WithVector(fields, None)
        if len(vector) % 4:
            raise ValueError(f"a float32 vector cannot have {len(vector)} bytes")
        return WithVector(fields, np.frombuffer(vector, "<f4"))


SERVICE_NAME = bridge_pb2.DESCRIPTOR.services_by_name["ParameterServer"].full_name
GRADIENTS = VectorCodec(bridge_pb2.Gradients)
VALUES = VectorCodec(bridge_pb2.Values)


def _parts(data: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Yield each field's tag, all of its bytes, and those of its value."""
    position = 0
    while position < len(data):
        begin = position
        tag, position = _read_varint(data, position)
        value_at, end = _extent(tag & 7, data, position)
        if end > len(data):
            raise ValueError("a message ends within a field")
        yield tag, data[begin:end], data[value_at:end]
        position = end


def _extent(kind: int, data: memoryview, position: int) -> tuple[int, int]:
    """Return where a value of a wire type begins and ends."""
    if kind == _VARINT:
        return position, _read_varint(data, position)[1]
    if kind == _EIGHT_BYTES:
        return position, position + 8
    if kind == _FOUR_BYTES:
        return position, position + 4
    if kind == _SIZED:
        size, position = _read_varint(data, position)
        return position, position + size
    raise ValueError(f"there is no wire type {kind}")


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _read_varint(data: memoryview, position: int) -> tuple[int, int]:
    """Return a number and the position behind it."""
    number = 0
    for shift in range(0, 64, 7):
        if position >= len(data):
            raise ValueError("a message ends within a number")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise ValueError("a number has more than 64 bits")

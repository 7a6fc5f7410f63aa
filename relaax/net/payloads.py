"""Messages that carry numbers, written and read without protobuf's copies of them.

Generated code copies a field of bytes twice on its way into a message and twice on its way out,
which takes longer than sending it. Here it is put behind the other fields' bytes, and found among
them as a view. The bytes are protobuf's own (https://protobuf.dev/programming-guides/encoding/):
fields may come in any order, and generated code at the other end understands them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from google.protobuf.message import Message

Fields = TypeVar("Fields", bound=Message)
Buffer: TypeAlias = bytes | memoryview

#: A message of steps has one for each environment; each takes time, however short it is.
MOST_FIELDS = 100_000

_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5


@dataclass(frozen=True)
class WithPayload(Generic[Fields]):
    """A message's other fields, and the bytes beside them, in one piece or in several."""

    fields: Fields
    #: None if the message has no payload; in one piece if it was decoded.
    payload: Sequence[Buffer] | None


class PayloadCodec(Generic[Fields]):
    """Encodes and decodes a type of message of which one field of bytes is large."""

    def __init__(self, message_type: type[Fields], field: str) -> None:
        self.message_type = message_type
        self._tag = message_type.DESCRIPTOR.fields_by_name[field].number << 3 | _SIZED

    def encode(self, message: WithPayload[Fields]) -> bytes:
        """Return the message's bytes."""
        fields = message.fields.SerializeToString()
        if message.payload is None:
            return fields
        size = sum(memoryview(part).nbytes for part in message.payload)
        return b"".join((fields, _varint(self._tag), _varint(size), *message.payload))

    def decode(self, data: bytes) -> WithPayload[Fields]:
        """Return the message, its payload a view of ``data``; ValueError for damaged bytes."""
        view = memoryview(data)
        payload, others, begin = None, [], 0
        for tag, field_at, value_at, end in _places(view):
            if tag == self._tag:
                others.append(view[begin:field_at])
                payload, begin = view[value_at:end], end
        others.append(view[begin:])
        fields = self.message_type.FromString(b"".join(others))
        return WithPayload(fields, None if payload is None else [payload])


def _places(data: memoryview) -> Iterator[tuple[int, int, int, int]]:
    """Yield each field's tag, where it begins, where its value begins, and where both end."""
    position = 0
    for _ in range(MOST_FIELDS):
        if position == len(data):
            return
        begin = position
        tag, position = _read_varint(data, position)
        value_at, end = _extent(tag & 7, data, position)
        if end > len(data):
            raise ValueError("a message ends within a field")
        yield tag, begin, value_at, end
        position = end
    if position < len(data):
        raise ValueError(f"a message has more than {MOST_FIELDS} fields")


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

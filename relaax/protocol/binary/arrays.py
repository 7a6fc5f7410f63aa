"""Arrays in binary messages: dtype, shape, then raw little-endian bytes in C order.

A block is one array, which has the empty name, or several arrays by name.
"""

import math
import struct
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.errors import ProtocolError
from relaax.observations import MAX_ARRAYS, MAX_NAME_BYTES
from relaax.protocol.connection import Payload

Array = npt.NDArray[Any]
Block: TypeAlias = Array | Mapping[str, Array] | None
"""One array, several by name, or nothing at all."""

MAX_DIMENSIONS = 8

DTYPES = {
    code: np.dtype(name)
    for code, name in enumerate(
        ("?", "u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8"), start=1
    )
}
_CODES = {dtype: code for code, dtype in DTYPES.items()}
_SHAPES = [struct.Struct(f"<{dimensions}I") for dimensions in range(MAX_DIMENSIONS + 1)]

_NOTHING = b"\0"
_ONE_UNNAMED = b"\1\0"


def encode_block(block: Block) -> list[bytes | memoryview]:
    """Return the pieces of a block: each array's description and bytes, in turns.

    TypeError for arrays that are not numeric, ValueError for names that cannot be sent.
    """
    if block is None:
        return [_NOTHING]
    if isinstance(block, np.ndarray):
        return [_ONE_UNNAMED + _header(block), _bytes_of(block)]
    if not 0 < len(block) <= MAX_ARRAYS:
        raise ValueError(f"a block has 1 to {MAX_ARRAYS} arrays by name, not {len(block)}")
    pieces: list[bytes | memoryview] = []
    for name, array in block.items():
        count = b"" if pieces else bytes([len(block)])
        pieces += (count + _encoded_name(name) + _header(array), _bytes_of(array))
    return pieces


def decode_block(payload: Payload, offset: int) -> tuple[Block, int]:
    """Return the block at ``offset`` and its end; its arrays are views into ``payload``.

    Raises ``ProtocolError``, ``IndexError`` or ``struct.error`` for damaged bytes. The caller that
    decodes a whole message turns the latter two into the first.
    """
    count = payload[offset]
    if count == 0:
        return None, offset + 1
    if payload[offset : offset + 2] == _ONE_UNNAMED:
        return _decode_array(payload, offset + 2)
    arrays: dict[str, Array] = {}
    offset += 1
    for _ in range(count):
        name, offset = _decode_name(payload, offset)
        if not name:
            raise ProtocolError("an array among several has no name")
        if name in arrays:
            raise ProtocolError(f"two arrays are named {name!r}")
        arrays[name], offset = _decode_array(payload, offset)
    return arrays, offset


def block_length(block: Block) -> int:
    """Return the first dimension that all arrays of a block share; 0 for nothing.

    ProtocolError when they do not share it.
    """
    if block is None:
        return 0
    arrays = [block] if isinstance(block, np.ndarray) else list(block.values())
    lengths = {array.shape[0] if array.ndim else -1 for array in arrays}
    if len(lengths) != 1 or -1 in lengths:
        raise ProtocolError("the arrays of a block have different first dimensions")
    return lengths.pop()


def _header(array: Array) -> bytes:
    code = _CODES.get(array.dtype.newbyteorder("<"))
    if code is None:
        raise TypeError(f"an array of {array.dtype} cannot be sent")
    if array.ndim > MAX_DIMENSIONS:
        raise TypeError(f"an array may have {MAX_DIMENSIONS} dimensions, this has {array.ndim}")
    return bytes((code, array.ndim)) + _SHAPES[array.ndim].pack(*array.shape)


def _bytes_of(array: Array) -> memoryview:
    if array.size == 0:
        return memoryview(b"")
    contiguous = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return contiguous.reshape(-1).view(np.uint8).data


def _encoded_name(name: str) -> bytes:
    encoded = name.encode()
    if not 0 < len(encoded) <= MAX_NAME_BYTES:
        raise ValueError(f"the name of an array has 1 to {MAX_NAME_BYTES} bytes: {name!r:.60}")
    return bytes([len(encoded)]) + encoded


def _decode_name(payload: Payload, offset: int) -> tuple[str, int]:
    end = offset + 1 + payload[offset]
    if end > len(payload):
        raise IndexError
    try:
        return str(payload[offset + 1 : end], encoding="utf-8"), end
    except UnicodeDecodeError as error:
        raise ProtocolError(f"the name of an array is not UTF-8: {error}") from error


def _decode_array(payload: Payload, offset: int) -> tuple[Array, int]:
    code, dimensions = payload[offset], payload[offset + 1]
    dtype = DTYPES.get(code)
    if dtype is None:
        raise ProtocolError(f"{code} is no type of numbers; 1 to {len(DTYPES)} are")
    if dimensions > MAX_DIMENSIONS:
        raise ProtocolError(f"an array has {dimensions} dimensions; {MAX_DIMENSIONS} are allowed")
    shape = _SHAPES[dimensions].unpack_from(payload, offset + 2)
    begin = offset + 2 + 4 * dimensions
    count = math.prod(shape)
    end = begin + count * dtype.itemsize
    if end > len(payload):
        raise ProtocolError(
            f"an array of {end - begin} bytes was announced, {len(payload) - begin} bytes follow"
        )
    try:
        return np.frombuffer(payload, dtype, count, begin).reshape(shape), end
    except ValueError as error:  # without elements, and yet too large for numpy to count
        raise ProtocolError(f"an array of shape {shape} is too large") from error

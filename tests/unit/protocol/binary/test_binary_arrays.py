"""Arrays as bytes."""

import numpy as np
import pytest

from relaax.errors import ProtocolError
from relaax.protocol.binary.arrays import block_length, decode_block, encode_block

ALL_TYPES = ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]


def encoded(block):
    return b"".join(encode_block(block))


def there_and_back(block):
    data = encoded(block)
    decoded, end = decode_block(data + b"more", 0)
    assert end == len(data)
    return decoded


@pytest.mark.parametrize("dtype", ALL_TYPES)
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_type_of_numbers_arrives_as_it_was(dtype, order):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(np.dtype(dtype).newbyteorder(order))
    decoded = there_and_back(array)
    assert decoded.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(decoded, array)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4, 5), (1, 0, 4), (1,) * 8])
def test_every_shape_arrives_as_it_was(shape):
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    decoded = there_and_back(array)
    assert decoded.shape == shape
    np.testing.assert_array_equal(decoded, array)


def test_an_array_that_is_not_contiguous_arrives_as_it_was():
    array = np.arange(24).reshape(4, 6)[::2, ::-3].T
    np.testing.assert_array_equal(there_and_back(array), array)


def test_names_arrive_with_their_arrays():
    block = {"camera": np.zeros((2, 3), np.uint8), "mäßig": np.ones(2)}
    decoded = there_and_back(block)
    assert list(decoded) == list(block)
    np.testing.assert_array_equal(decoded["mäßig"], [1, 1])


def test_nothing_is_one_byte():
    assert encoded(None) == b"\0"
    assert decode_block(b"\0", 0) == (None, 1)


def test_the_bytes_of_one_unnamed_array():
    header = bytes([1, 0, 5, 1, 2, 0, 0, 0])
    assert encoded(np.array([1, -2], np.int16)) == header + b"\x01\x00\xfe\xff"


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.zeros((1,) * 9)])
def test_an_array_without_a_type_on_the_wire_is_the_callers_error(array):
    with pytest.raises(TypeError, match="an array"):
        encode_block(array)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bytes([1, 0, 13, 0]), "13 is no type of numbers"),
        (bytes([1, 0, 0, 0]), "0 is no type of numbers"),
        (bytes([1, 0, 2, 9]) + bytes(40), "9 dimensions; 8 are allowed"),
        (bytes([1, 0, 2, 1, 4, 0, 0, 0, 1, 2, 3]), "an array of 4 bytes was announced, 3 bytes"),
        (bytes([1, 0, 12, 2]) + b"\xff" * 8, "bytes was announced, 0 bytes follow"),
        (bytes([2]) + bytes([1, 65, 2, 1, 0, 0, 0, 0]) * 2, "two arrays are named 'A'"),
        (bytes([1, 1, 255, 2, 0]), "not UTF-8"),
        (bytes([1, 0, 2, 5, 1, 0, 0, 0, 0, 0, 0, 0]) + b"\xff" * 12, "is too large"),
    ],
)
def test_a_damaged_block_is_refused_with_the_reason(data, reason):
    with pytest.raises(ProtocolError, match=reason):
        decode_block(data, 0)


def test_the_arrays_of_a_block_share_their_first_dimension():
    assert block_length({"a": np.zeros((3, 2)), "b": np.zeros(3)}) == 3
    for block in ({"a": np.zeros(3), "b": np.zeros(2)}, np.zeros(())):
        with pytest.raises(ProtocolError, match="different first dimensions"):
            block_length(block)

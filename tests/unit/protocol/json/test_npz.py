import io
import random
import struct
import zipfile
from typing import Any

import numpy as np
import pytest

from relaax.errors import ProtocolError
from relaax.protocol.json import npz

MEBIBYTE = 1024 * 1024

ARRAYS = [
    np.float32([0.5, -0.25]),
    np.zeros((84, 84), np.uint8),
    np.arange(24, dtype=np.int64).reshape(2, 3, 4),
    np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
    np.arange(10, dtype=np.int16)[::2],
    np.array([True, False]),
    np.array(7, np.int32),
    np.zeros((0, 3), np.float32),
    np.arange(4, dtype=">f4"),
    np.float16([1, 2]),
]


def savez(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def zipped(npy: bytes, name: str = "obj.npy", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(name, npy)
    return file.getvalue()


def npy_of(header: bytes, body: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def header_of(descr: str = "'<f4'", shape: str = "(2,)") -> bytes:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype.newbyteorder("=")
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_numpy_loads_what_dump_writes(array: np.ndarray) -> None:
    with np.load(io.BytesIO(npz.dump(array)), allow_pickle=False) as archive:
        assert list(archive) == ["obj"]
        assert_same(archive["obj"].astype(array.dtype.newbyteorder("=")), array)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_load_reads_what_numpy_writes(array: np.ndarray) -> None:
    assert_same(npz.load(savez(obj=array), MEBIBYTE), array)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_load_reads_what_dump_writes(array: np.ndarray) -> None:
    assert_same(npz.load(npz.dump(array), MEBIBYTE), array)


def test_the_standard_library_finds_the_archive_whole() -> None:
    with zipfile.ZipFile(io.BytesIO(npz.dump(ARRAYS[0]))) as archive:
        assert archive.testzip() is None


def test_the_same_array_is_the_same_bytes() -> None:
    assert npz.dump(ARRAYS[1]) == npz.dump(ARRAYS[1].copy())


def test_an_uncompressed_archive_is_read() -> None:
    file = io.BytesIO()
    np.savez(file, obj=ARRAYS[2])
    assert_same(npz.load(file.getvalue(), MEBIBYTE), ARRAYS[2])


def test_long_integers_of_python_2_are_read() -> None:
    npy = npy_of(header_of(shape="(1L, 2L)"), np.float32([1, 2]).tobytes())
    assert_same(npz.load(zipped(npy), MEBIBYTE), np.float32([[1, 2]]))


def test_a_loaded_array_can_be_written_to() -> None:
    array = npz.load(npz.dump(ARRAYS[0]), MEBIBYTE)
    array[0] = 7
    assert array.tolist() == [7, -0.25]


def test_a_small_archive_of_a_big_array_is_refused_before_it_is_unpacked() -> None:
    bomb = savez(obj=np.zeros(50 * MEBIBYTE, np.uint8))
    assert len(bomb) < MEBIBYTE
    with pytest.raises(ProtocolError, match=r"52428928 bytes exceeds the limit of 1049600"):
        npz.load(bomb, MEBIBYTE)


def test_an_archive_that_understates_its_size_is_refused() -> None:
    archive = bytearray(npz.dump(np.zeros(MEBIBYTE, np.uint8)))
    directory = archive.rindex(b"PK\1\2")
    archive[directory + 24 : directory + 28] = struct.pack("<I", 200)
    with pytest.raises(ProtocolError, match="shorter or longer than announced"):
        npz.load(bytes(archive), MEBIBYTE)


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (b"", "it has 0 bytes"),
        (b"no zip archive at all, but longer than an end record", "does not end as a zip archive"),
        (npz.dump(ARRAYS[0])[:-1], "does not end as a zip archive"),
        (npz.dump(ARRAYS[0])[1:], "has no entry"),
        (savez(obj=ARRAYS[0], other=ARRAYS[0]), "2 members instead of one"),
        (savez(other=ARRAYS[0]), r"member is b'other\.npy' instead of b'obj\.npy'"),
        (zipped(npy_of(header_of()), method=zipfile.ZIP_BZIP2), "compression method is 12"),
        (zipped(b"text"), "no npy file"),
        (zipped(b"\x93NUMPY"), "no npy file"),
        (zipped(b"\x93NUMPY\x02\x00\x00"), "damaged"),
        (zipped(b"\x93NUMPY\x09\x00\x02\x00  "), "npy version is 9"),
        (zipped(npy_of(b" " * 2000)), "npy header has 2000 bytes"),
        (zipped(npy_of(b"{}")), "not of booleans or real numbers"),
        (zipped(npy_of(header_of(), b"short")), r"\(2,\) float32 is not 5 bytes"),
        (zipped(npy_of(header_of(shape="(10000000000000000000,)"))), "impossible shape"),
        (zipped(npy_of(header_of(shape="(1 1,)"))), "impossible shape"),
        (zipped(npy_of(header_of(shape=f"({'1,' * 40})"))), "impossible shape"),
        (zipped(npy_of(header_of(descr="'<f3'"))), "unknown dtype '<f3'"),
        (savez(obj=np.array(["text"])), "not of booleans or real numbers"),
        (savez(obj=np.array([1j])), "not of booleans or real numbers"),
        (savez(obj=np.array([{}], object)), "not of booleans or real numbers"),
        (savez(obj=np.float32([1, np.nan])), "holds NaN or an infinity"),
        (savez(obj=np.float64([[np.inf]])), "holds NaN or an infinity"),
    ],
)
def test_anything_but_one_finite_array_is_refused(archive: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        npz.load(archive, MEBIBYTE)


def test_an_encrypted_archive_is_refused() -> None:
    archive = bytearray(npz.dump(ARRAYS[0]))
    archive[archive.rindex(b"PK\1\2") + 8] |= 1
    with pytest.raises(ProtocolError, match="encrypted"):
        npz.load(bytes(archive), MEBIBYTE)


def test_no_damage_causes_any_other_error_or_goes_unnoticed() -> None:
    rng = random.Random(1)
    whole = npz.dump(np.arange(100, dtype=np.float32))
    expected = np.arange(100, dtype=np.float32)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            # Time stamps, attributes and the copy of the sizes may change without harm.
            assert_same(npz.load(bytes(damaged), MEBIBYTE), expected)
        except ProtocolError:
            refused += 1
    assert refused > 1000


@pytest.mark.parametrize(
    "array",
    [
        np.array(["text"]),
        np.array([1j]),
        np.array([None]),
        np.zeros(2, "i4,f4"),
        np.array(["NaT"], "M8"),
    ],
    ids=lambda a: str(a.dtype),
)
def test_an_array_of_anything_but_numbers_is_not_written(array: np.ndarray) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        npz.dump(array)


def test_an_array_with_nan_is_not_written() -> None:
    with pytest.raises(ValueError, match=r"shape \(2,\) holds NaN"):
        npz.dump(np.float32([1, np.nan]))

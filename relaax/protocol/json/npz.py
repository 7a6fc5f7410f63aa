"""One array as the bytes of an ``.npz`` file, as ``numpy.savez_compressed(obj=array)`` writes it.

An ``.npz`` is a zip archive with an ``.npy`` file in it. ``numpy.load`` reads the bytes of
``dump``, and ``load`` reads files of every numpy. The formats are written out here because the
bytes come from strangers: nothing is unpickled, nothing is allocated before its size is known and
allowed, and one frame of an Atari game takes a third of the time of the general-purpose library.

The layouts: APPNOTE.TXT of PKWARE (zip), NEP 1 of numpy (npy).
"""

import functools
import io
import math
import re
import struct
import zlib
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from relaax.errors import ProtocolError
from relaax.observations import NUMBERS

MEMBER_NAME = b"obj.npy"
# Cheaper than the default level on a frame of an Atari game, for a few more bytes.
COMPRESSION_LEVEL = 1

# signature, version, flags, method, time, date, crc, compressed, uncompressed, name, extra
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
# ... as above with "made by" before the version, then comment, disk, attributes (2), offset
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
# signature, disk, directory's disk, entries here, entries, directory size and offset, comment
_END = struct.Struct("<4sHHHHIIH")
_VERSION, _STORED, _DEFLATED, _FIRST_OF_JANUARY_1980 = 20, 0, 8, 0x21
_ENCRYPTED_FLAG = 1

_NPY_MAGIC = b"\x93NUMPY"
NPY_MAX_HEADER_BYTES = 1024
NPY_MAX_DIMENSIONS = 32
_NPY_DESCR = re.compile(r"""['"]descr['"]\s*:\s*['"]([<>|=]?[biuf]\d{1,2})['"]""")
_NPY_ORDER = re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)""")
_NPY_SHAPE = re.compile(r"""['"]shape['"]\s*:\s*\(([\d,\sL]*)\)""")


def dump(array: NDArray[Any]) -> bytes:
    """Return ``array`` as the bytes of an ``.npz`` file with one member named ``obj``.

    Raises ``ValueError`` for an array of anything but finite real numbers.
    """
    if array.dtype.kind not in NUMBERS:
        raise ValueError(f"an array of {array.dtype} cannot be sent; send booleans or real numbers")
    _check_finite(array, ValueError)
    npy = _npy_header(array.dtype.str, array.shape) + array.tobytes()
    deflate = zlib.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(npy) + deflate.flush()
    return _archive(body, zlib.crc32(npy), len(npy))


def load(archive: bytes, max_array_bytes: int) -> NDArray[Any]:
    """Return the array in ``archive``, the bytes of an ``.npz`` file with one member named ``obj``.

    Raises ``ProtocolError`` when it is anything else, or not of finite real numbers, or larger
    than ``max_array_bytes`` when it is unpacked.
    """
    try:
        array = _parse_npy(_unpack_member(archive, max_array_bytes))
    except (struct.error, zlib.error) as error:
        raise ProtocolError(f"an npz archive is damaged: {error}") from error
    _check_finite(array, ProtocolError)
    return array


def _check_finite(array: NDArray[Any], error_class: type[Exception]) -> None:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise error_class(
            f"an array of shape {array.shape} holds NaN or an infinity, which RLX does not carry"
        )


@functools.lru_cache(maxsize=64)
def _npy_header(descr: str, shape: tuple[int, ...]) -> bytes:
    header = io.BytesIO()
    npy_format.write_array_header_1_0(
        header, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return header.getvalue()


def _archive(body: bytes, crc: int, unpacked_bytes: int) -> bytes:
    common = (_VERSION, 0, _DEFLATED, 0, _FIRST_OF_JANUARY_1980, crc, len(body), unpacked_bytes)
    local = _LOCAL.pack(b"PK\3\4", *common, len(MEMBER_NAME), 0) + MEMBER_NAME
    central = _CENTRAL.pack(b"PK\1\2", _VERSION, *common, len(MEMBER_NAME), 0, 0, 0, 0, 0, 0)
    directory_bytes = len(central) + len(MEMBER_NAME)
    end = _END.pack(b"PK\5\6", 0, 0, 1, 1, directory_bytes, len(local) + len(body), 0)
    return b"".join((local, body, central, MEMBER_NAME, end))


def _unpack_member(archive: bytes, max_array_bytes: int) -> bytes:
    directory_offset = _find_directory(archive)
    fields = _CENTRAL.unpack_from(archive, directory_offset)
    signature, _, _, flags, method, _, _, crc, packed_bytes, unpacked_bytes, name_bytes = fields[
        :11
    ]
    name_offset = directory_offset + _CENTRAL.size
    _require(signature == b"PK\1\2", "its directory has no entry")
    _require(not flags & _ENCRYPTED_FLAG, "it is encrypted")
    name = archive[name_offset : name_offset + name_bytes]
    _require(name == MEMBER_NAME, f"its member is {name[:40]!r} instead of {MEMBER_NAME!r}")
    allowed = max_array_bytes + NPY_MAX_HEADER_BYTES
    if unpacked_bytes > allowed:
        raise ProtocolError(f"an array of {unpacked_bytes} bytes exceeds the limit of {allowed}")
    body_offset = _body_offset(archive, local_offset=fields[-1])
    body = memoryview(archive)[body_offset : body_offset + packed_bytes]
    npy = _inflate(body, method, unpacked_bytes)
    _require(len(npy) == unpacked_bytes, "its member is shorter or longer than announced")
    _require(zlib.crc32(npy) == crc, "its checksum is wrong")
    return npy


def _find_directory(archive: bytes) -> int:
    _require(len(archive) >= _END.size, f"it has {len(archive)} bytes")
    signature, _, _, _, entries, _, offset, _ = _END.unpack_from(archive, len(archive) - _END.size)
    _require(signature == b"PK\5\6", "it does not end as a zip archive")
    _require(entries == 1, f"it has {entries} members instead of one")
    directory_offset: int = offset
    return directory_offset


def _body_offset(archive: bytes, local_offset: int) -> int:
    fields = _LOCAL.unpack_from(archive, local_offset)
    _require(fields[0] == b"PK\3\4", "its member has no header")
    name_bytes, extra_bytes = fields[-2:]
    return local_offset + _LOCAL.size + int(name_bytes) + int(extra_bytes)


def _inflate(body: memoryview, method: int, unpacked_bytes: int) -> bytes:
    if method == _STORED:
        return bytes(body)
    _require(method == _DEFLATED, f"its compression method is {method}")
    # One byte more than announced is enough to notice that there is more.
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(body, unpacked_bytes + 1)


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ProtocolError(f"an npz archive cannot be read: {otherwise}")


def _parse_npy(npy: bytes) -> NDArray[Any]:
    header_offset, header_bytes = _npy_header_place(npy)
    header = npy[header_offset : header_offset + header_bytes]
    dtype, is_fortran_order, shape = _parse_npy_header(header)
    body = memoryview(npy)[header_offset + header_bytes :]
    expected_bytes = math.prod(shape) * dtype.itemsize
    _require(len(body) == expected_bytes, f"{shape} {dtype} is not {len(body)} bytes")
    try:
        flat = np.frombuffer(body, dtype).astype(dtype.newbyteorder("="))
        return flat.reshape(shape, order="F" if is_fortran_order else "C")
    except ValueError as error:
        raise ProtocolError(f"an array of shape {shape} is impossible: {error}") from error


def _npy_header_place(npy: bytes) -> tuple[int, int]:
    _require(len(npy) > 8 and npy[:6] == _NPY_MAGIC, "its member is no npy file")
    version = npy[6]
    _require(version in {1, 2, 3}, f"its npy version is {version}")
    length = struct.Struct("<H" if version == 1 else "<I")
    (header_bytes,) = length.unpack_from(npy, 8)
    _require(header_bytes <= NPY_MAX_HEADER_BYTES, f"its npy header has {header_bytes} bytes")
    return 8 + length.size, header_bytes


@functools.lru_cache(maxsize=64)
def _parse_npy_header(header: bytes) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    text = header.decode("latin-1")
    descr, order, sizes = (p.search(text) for p in (_NPY_DESCR, _NPY_ORDER, _NPY_SHAPE))
    if descr is None or order is None or sizes is None:
        raise ProtocolError(f"an array is not of booleans or real numbers: {text[:120].strip()!r}")
    return _parse_descr(descr[1]), order[1] == "True", _parse_shape(sizes[1])


def _parse_descr(descr: str) -> np.dtype[Any]:
    try:
        return np.dtype(descr)
    except TypeError as error:
        raise ProtocolError(f"an array has the unknown dtype {descr!r}") from error


def _parse_shape(text: str) -> tuple[int, ...]:
    # Python 2 wrote 84L on some platforms.
    sizes = [size.strip().removesuffix("L") for size in text.split(",") if size.strip()]
    if len(sizes) > NPY_MAX_DIMENSIONS or not all(re.fullmatch(r"\d{1,18}", s) for s in sizes):
        raise ProtocolError(f"an array has the impossible shape ({text[:120]})")
    return tuple(int(size) for size in sizes)

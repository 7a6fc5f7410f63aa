"""Arrays in bytes, little-endian: one after another without gaps, or at given places."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from relaax.observations import NUMBERS

Array = npt.NDArray[Any]

#: As numpy writes them: "<f4", "|b1".
_NUMBERS = re.compile(r"[<>|=]?[biuf]\d{1,2}")


def dtype_of(text: str) -> np.dtype[Any]:
    """Return a type of numbers; ValueError for others, some of which numpy reads as a program."""
    try:
        if _NUMBERS.fullmatch(text):
            return np.dtype(text)
    except TypeError:
        pass
    raise ValueError(f"{text!r:.40} is no type of numbers")


def below(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays whose names begin with ``prefix``, by the rest of their names."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def named(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays with ``prefix`` before their names."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


#: The type of an array's numbers, and its shape.
Form = tuple[np.dtype[Any], tuple[int, ...]]


class Place(NamedTuple):
    """Where an array lies in bytes."""

    offset: int
    #: Bytes from one element to the next along each axis; empty if contiguous.
    strides: tuple[int, ...] = ()


def packed(arrays: Iterable[Array]) -> tuple[list[memoryview], list[Place]]:
    """Return the bytes of arrays, and the place of each in them.

    Contiguous arrays are not copied. Parts of one array, for example overlapping stacks of frames,
    are written once, as that array.
    """
    parts: list[memoryview] = []
    places: list[Place] = []
    #: Where each base array begins, by its id; the parts keep their bases alive.
    begins: dict[int, int] = {}
    arrays, end = list(arrays), 0
    for array in arrays:
        whole = _whole_of(array)
        begin = end if whole is None else begins.setdefault(id(whole), end)
        if begin == end:
            (part,) = written([array if whole is None else whole])
            parts.append(part)
            end += part.nbytes
        if whole is None:
            places.append(Place(begin))
        else:
            places.append(Place(begin + address_of(array) - address_of(whole), array.strides))
    return parts, places


def _whole_of(array: Array) -> Array | None:
    """Return the array that ``array`` is a part of, if that can be sent as it is."""
    base = array.base
    if isinstance(base, np.ndarray) and not array.flags.c_contiguous:
        is_alike = base.dtype == array.dtype and base.ndim == array.ndim
        if is_alike and base.flags.c_contiguous and base.dtype == base.dtype.newbyteorder("<"):
            return base
    return None


def array_at(data: Any, form: Form, place: Place) -> Array:
    """Return the array that lies in ``data`` at a place.

    ValueError if it does not fit, and for anything but numbers.
    """
    dtype, shape = form
    if dtype.kind not in NUMBERS:
        raise ValueError(f"dtype {dtype} is not numeric")
    try:
        return np.ndarray(shape, dtype, data, place.offset, place.strides or None)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"an array does not lie within its message: {error}") from error


def extent_of(array: Array) -> int:
    """Return how many bytes lie between an array's first and its last, both counted."""
    if array.size == 0:
        return 0
    steps = zip(array.shape, array.strides, strict=True)
    extent: int = sum((count - 1) * stride for count, stride in steps) + array.itemsize
    return extent


def address_of(array: Array) -> int:
    """Return where an array's first element lies in memory."""
    address: int = array.__array_interface__["data"][0]
    return address


def written(arrays: Iterable[Array]) -> list[memoryview]:
    """Return the bytes of arrays; contiguous ones are not copied."""
    return [plain(array).reshape(-1).view(np.uint8).data for array in arrays]


def size_of(forms: Iterable[Form]) -> int:
    """Return how many bytes arrays of these forms take."""
    return sum(_bytes_of(form) for form in forms)


def read(data: memoryview, forms: Sequence[Form]) -> list[Array]:
    """Return read-only arrays that lie in ``data``; ValueError if they are not all of it."""
    expected = size_of(forms)
    if len(data) != expected:
        raise ValueError(f"arrays of {expected} bytes are announced, and {len(data)} came")
    arrays, begin = [], 0
    for dtype, shape in forms:
        end = begin + _bytes_of((dtype, shape))
        arrays.append(np.frombuffer(data[begin:end], dtype).reshape(shape))
        begin = end
    return arrays


def plain(array: Array) -> Array:
    """Return an array as it is sent, contiguous and little-endian; itself if it is so."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def _bytes_of(form: Form) -> int:
    dtype, shape = form
    return dtype.itemsize * math.prod(shape)

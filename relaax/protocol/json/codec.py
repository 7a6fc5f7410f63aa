"""Values as JSON text.

An array, anywhere in a value, is ``{"b64npz": B}``: base64 of an ``.npz`` file whose one array is
named ``obj``. numpy scalars are plain numbers. NaN and infinities are refused in both directions:
JSON has no word for them.
"""

import base64
import binascii
import contextlib
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from relaax.errors import ProtocolError
from relaax.observations import why_no_numbers
from relaax.protocol.connection import Payload
from relaax.protocol.json import npz
from relaax.protocol.nesting import require_within_limits

DEFAULT_MAX_ARRAY_BYTES = 64 * 1024 * 1024

_ARRAY_KEY = "b64npz"


def encode(value: Any, what: str = "a value") -> str:
    """Return ``value`` as ASCII JSON text, separated as ``json.dumps`` does by default.

    Raises ``ValueError`` for NaN, an infinity or endless nesting, and ``TypeError`` for a type that
    JSON cannot hold; ``what`` names the value in the message.
    """
    try:
        return _ENCODER.encode(value)
    except RecursionError as error:
        raise ValueError(f"{what} is nested too deeply to be sent") from error
    except ValueError as error:
        raise ValueError(_explain(error, value, what)) from error
    except TypeError as error:
        raise TypeError(f"{what} cannot be sent: {error}") from error


def decode(text: str, max_array_bytes: int = DEFAULT_MAX_ARRAY_BYTES) -> Any:
    """Return the value of the JSON in ``text``.

    All its arrays together may unpack to ``max_array_bytes``, and the rest has the limits of
    ``nesting``. Raises only ``ProtocolError``, for anything that cannot be decoded.
    """
    require_within_limits(text)
    arrays = _ArrayDecoder(max_array_bytes)
    try:
        return json.loads(
            text,
            object_hook=arrays.decode,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
        )
    except ValueError as error:
        raise ProtocolError(f"this is not JSON: {error}: {text[:64]!r}") from error


def decode_utf8(payload: Payload, max_array_bytes: int = DEFAULT_MAX_ARRAY_BYTES) -> Any:
    """Return the value that ``payload`` is the UTF-8 JSON of; raises as ``decode`` does."""
    try:
        text = str(payload, encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ProtocolError(f"this is not UTF-8: {error}: {bytes(payload[:64])!r}") from error
    return decode(text, max_array_bytes)


class _ArrayDecoder:
    """Decodes the arrays of one text while they fit into its budget of bytes."""

    def __init__(self, max_array_bytes: int) -> None:
        self._bytes_left = max_array_bytes

    def decode(self, members: dict[str, Any]) -> Any:
        """Return the array that a JSON object stands for, or the object itself."""
        if _ARRAY_KEY not in members:
            return members
        encoded = members[_ARRAY_KEY]
        if len(members) != 1 or not isinstance(encoded, str):
            raise ProtocolError(f'an array is {{"{_ARRAY_KEY}": "..."}} with a string and no more')
        array = npz.load(_decode_base64(encoded), self._bytes_left)
        self._bytes_left = max(self._bytes_left - array.nbytes, 0)
        return array


def _decode_base64(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ProtocolError(f"{_ARRAY_KEY} is not base64: {error}: {encoded[:32]!r}") from error


def _refuse_constant(name: str) -> None:
    raise ProtocolError(f"{name} is not allowed in JSON")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ProtocolError(f"{text[:32]} is too large for a number")
    return number


def _encode_numpy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
            raise TypeError(why_no_numbers("an array", value))
        return {_ARRAY_KEY: base64.b64encode(npz.dump(value)).decode("ascii")}
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item() if value.dtype.itemsize <= 8 else float(value)
    raise TypeError(f"{type(value).__name__} is not a number, text, list, mapping or array")


def _explain(error: ValueError, value: Any, what: str) -> str:
    with contextlib.suppress(RecursionError):  # a list that holds itself
        for place in _places_that_are_not_finite(value, what):
            return place
    return f"{what} cannot be sent: {error}"


def _places_that_are_not_finite(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        yield f"{place} is {float(value)}, which JSON cannot carry"
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _places_that_are_not_finite(member, f"{place}[{key!r}]")
    elif isinstance(value, list | tuple):
        for index, member in enumerate(value):
            yield from _places_that_are_not_finite(member, f"{place}[{index}]")


_ENCODER = json.JSONEncoder(default=_encode_numpy, allow_nan=False)

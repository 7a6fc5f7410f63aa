"""Observations of many environments: one array, or several arrays by name.

An environment that reports a camera and a speed has two arrays for each state. ``Observations`` are
an array [B, ...], or a dict of arrays with the same B; a nested space is flat here, its names
joined by ``/``. The functions treat both alike, so that code that keeps, joins or selects
observations is written once.
"""

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Observations: TypeAlias = Array | dict[str, Array]
Shape: TypeAlias = tuple[int, ...]

#: The shape of one observation, or the shapes of several by name.
Shapes: TypeAlias = Shape | Mapping[str, Shape]

#: numpy's kinds of numbers: bool, signed and unsigned integer, float.
NUMBERS = "biuf"

#: Between the names of nested spaces.
SEPARATOR = "/"

#: The name, among named ones, of an observation that is one array without a name.
UNNAMED = ""
#: How many arrays an observation may have, and how long a name may be in UTF-8.
MAX_ARRAYS = 255
MAX_NAME_BYTES = 255


def mapped(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """Return ``function`` of an array, or of each array of a dict by name.

    ``others`` are of the same form: their arrays are further arguments.
    """
    if isinstance(first, dict):
        return {name: function(part, *(o[name] for o in others)) for name, part in first.items()}
    return function(first, *others)


def arrays_in(observations: Observations) -> Iterable[Array]:
    """Return the arrays, in the order of their names."""
    return observations.values() if isinstance(observations, dict) else (observations,)


def count_of(observations: Observations) -> int:
    """Return B, of how many environments they are."""
    return len(next(iter(arrays_in(observations)), ()))


def kind_of(observations: Observations) -> Any:
    """Return names, types of numbers and shapes; observations of one kind can be joined."""
    if isinstance(observations, dict):
        return {name: (part.dtype, part.shape[1:]) for name, part in observations.items()}
    return observations.dtype, observations.shape[1:]


def joined(parts: Sequence[Observations]) -> Observations:
    """Return observations of one kind, one after another."""
    if len(parts) == 1:
        return parts[0]
    together: Observations = mapped(lambda *arrays: np.concatenate(arrays), *parts)
    return together


def flat_items(
    nested: Mapping[Any, Any], prefix: str = "", separator: str = SEPARATOR
) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of mappings inside mappings, the names joined by ``separator``."""
    for name, value in nested.items():
        if isinstance(value, Mapping):
            yield from flat_items(value, f"{prefix}{name}{separator}", separator)
        else:
            yield f"{prefix}{name}", value


def flattened(nested: Mapping[Any, Any]) -> dict[str, Any]:
    """Return ``flat_items`` as a dict; ValueError for names that are the same when joined."""
    found: dict[str, Any] = {}
    for name, value in flat_items(nested):
        _add(found, name, value)
    return found


def named(nested: dict[Any, Any]) -> dict[str, Any]:
    """Return the values in a dict and the dicts and tuples in it, by names joined by ``/``.

    The names of a tuple's elements are "0", "1" and so on; lists and arrays stay as they are.
    ValueError for names that cannot be sent, or that are not different when they are joined.
    """
    found: dict[str, Any] = {}
    for name, value in _leaves(nested, ""):
        _require_name(name)
        _add(found, name, value)
    if not 0 < len(found) <= MAX_ARRAYS:
        raise ValueError(f"an observation has 1 to {MAX_ARRAYS} arrays by name, not {len(found)}")
    return found


def _add(found: dict[str, Any], name: str, value: Any) -> None:
    if name in found:
        raise ValueError(f"two observations are named {name!r}")
    found[name] = value


def _leaves(nested: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    members = enumerate(nested) if isinstance(nested, tuple) else nested.items()
    for key, value in members:
        if not isinstance(key, str | int) or key == "":
            raise ValueError(f"the name of an observation is a text, not {key!r}")
        if isinstance(value, dict | tuple):
            yield from _leaves(value, f"{prefix}{key}{SEPARATOR}")
        else:
            yield f"{prefix}{key}", value


def _require_name(name: str) -> None:
    try:
        length = len(name.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"the name {name!r} of an observation is no Unicode") from error
    if length > MAX_NAME_BYTES:
        raise ValueError(
            f"the name of an observation has at most {MAX_NAME_BYTES} bytes: {name!r:.60}"
        )


def as_numbers(value: Any) -> Array | None:
    """Return ``value`` as an array of numbers, of its own type; None for anything else.

    Numbers of more than 64 bits, which others cannot read, become 64-bit floats. Tensors of other
    libraries are numbers if numpy can read their memory; a masked array is one unless a value in it
    is masked.
    """
    if type(value) is np.ndarray and value.dtype.kind in NUMBERS and value.dtype.itemsize <= 8:
        return value  # as nearly always
    if _hides_values(value):
        return None
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O" and hasattr(value, "__dlpack__"):
            array = np.from_dlpack(value)
    except (TypeError, ValueError, RuntimeError, BufferError):  # ragged lists, tensors on a GPU
        return None
    if array.dtype.kind not in NUMBERS:
        return None
    return array if array.dtype.itemsize <= 8 else array.astype(np.float64)


def why_no_numbers(what: str, value: Any) -> str:
    """Return why ``as_numbers`` refuses ``value``: the faulty part, its type, and a remedy.

    ``what`` names the value; parts of it are ``what[0]``, ``what[1]`` and so on.
    """
    if not isinstance(value, np.ma.MaskedArray) and (
        isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype.hasobject)
    ):
        return _why_no_numbers_inside(what, value)
    return f"{what} {_kind_and_remedy(value)}"


def _kind_and_remedy(value: Any) -> str:
    match value:
        case None:
            return "is None: send a number instead, and whether it is one as another observation"
        case str() | bytes():
            return f"is the text {value!r:.40}: make numbers of it"
        case np.ma.MaskedArray():
            return (
                "has masked values, which mean nothing: fill them (numpy.ma.filled), and send the "
                "mask as another observation"
            )
        case complex():
            return "is complex: send its real and its imaginary part"
        case int():
            return f"is {reprlib.repr(value)}, too large for a number of 64 bits"
    kind = getattr(value, "dtype", type(value).__name__)
    return f"is of the type {kind}: make a numpy array of numbers of it, in this machine's memory"


def _why_no_numbers_inside(what: str, value: Any) -> str:
    """Return the fault of the first part that is not numeric, or of another shape."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return why_no_numbers(what, value.item())
    first: Shape | None = None
    for index, part in enumerate(value):
        array = as_numbers(part)
        if array is None:
            return why_no_numbers(f"{what}[{index}]", part)
        first = array.shape if first is None else first
        if array.shape != first:
            return (
                f"{what}[{index}] has the shape {list(array.shape)}, and {what}[0] "
                f"{list(first)}: pad them to one shape, and send their lengths, or a mask, as "
                "another observation"
            )
    return f"{what} is an array of objects: convert it, for example to float32"


def _hides_values(value: Any) -> bool:
    """Return whether a value is masked: an array, or an array in lists."""
    if isinstance(value, list | tuple):
        return any(_hides_values(part) for part in value)
    return isinstance(value, np.ma.MaskedArray) and bool(np.ma.is_masked(value))

"""Shapes in configurations: ``state_size``, ``history_len`` and ``action_size``."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, overload

from pydantic import BeforeValidator, Discriminator, Field, PositiveInt, Tag

from relaax.algorithm_base.config_base import LISTED
from relaax.observations import UNNAMED, Shape, Shapes, flattened
from relaax.spaces import Space

#: Dimensions of a number and of an image without channels, which get an axis to stack along.
NUMBER, GREY = 0, 2

# In brackets, which error messages leave out, as they do with pydantic's own.
_ALONE, _NAMED = "[alone]", "[named]"
_COUNT, _SIZES = "[count]", "[sizes]"


def _tag(value: Any) -> str:
    return _NAMED if isinstance(value, dict) else _ALONE


def _flat(value: Any) -> Any:
    return flattened(value) if isinstance(value, dict) else value


def _tag_of_sizes(value: Any) -> str:
    return _SIZES if isinstance(value, list | tuple) else _COUNT


_Shape = Annotated[tuple[PositiveInt, ...], LISTED, Field(max_length=3)]

_Name = Annotated[str, Field(min_length=1)]

#: A field for ``state_size``: a shape, or shapes by name; nested names are joined by ``/``.
StateSize: TypeAlias = Annotated[
    Annotated[_Shape, Tag(_ALONE)]
    | Annotated[dict[_Name, _Shape], Field(min_length=1), BeforeValidator(_flat), Tag(_NAMED)],
    Discriminator(_tag),
]

#: A field for ``history_len``: a length, or lengths by name.
HistoryLength: TypeAlias = Annotated[
    Annotated[PositiveInt, Tag(_ALONE)]
    | Annotated[dict[str, PositiveInt], BeforeValidator(_flat), Tag(_NAMED)],
    Discriminator(_tag),
]

#: A field for ``action_size``: a number, or several of them, such as a shape.
CountOrSizes: TypeAlias = Annotated[
    Annotated[PositiveInt, Tag(_COUNT)] | Annotated[tuple[PositiveInt, ...], LISTED, Tag(_SIZES)],
    Discriminator(_tag_of_sizes),
]


@overload
def stacked_shape(state_size: Shape, history_len: int | Mapping[str, int]) -> Shape: ...
@overload
def stacked_shape(state_size: Shapes, history_len: int | Mapping[str, int]) -> Shapes: ...
def stacked_shape(state_size: Shapes, history_len: int | Mapping[str, int]) -> Shapes:
    """Return the shape of one observation of ``Preprocessor(state_size, history_len)``.

    Of named arrays it is a dict of their shapes.
    """
    if not isinstance(state_size, Mapping):
        return _stacked(state_size, length_alone(history_len))
    lengths = lengths_by_name(state_size, history_len)
    return {name: _stacked(shape, lengths[name]) for name, shape in state_size.items()}


def needs_axis(state_size: Shape) -> bool:
    """Return whether states get a last axis of 1, along which they are stacked."""
    return len(state_size) in (NUMBER, GREY)


def length_alone(history_len: int | Mapping[str, int]) -> int:
    """Return the length of the history of a state without names; ValueError if it has names."""
    if isinstance(history_len, Mapping):
        raise ValueError(f"history_len names {', '.join(history_len)}, and state_size has no names")
    return history_len


def lengths_by_name(
    state_size: Mapping[str, Shape], history_len: int | Mapping[str, int]
) -> dict[str, int]:
    """Return the length of each history; 1 where ``history_len`` has names, and not this one.

    ValueError for a name that ``state_size`` has not.
    """
    if not isinstance(history_len, Mapping):
        return dict.fromkeys(state_size, history_len)
    for name in history_len:
        if name not in state_size:
            raise ValueError(f"history_len: {name}: state_size has no such observation")
    return {name: history_len.get(name, 1) for name in state_size}


def written_size(state_size: Shapes, name: str = UNNAMED) -> str:
    """Return ``state_size`` about as it is written in YAML; of one shape with its name, if any."""
    if not isinstance(state_size, Mapping):
        return f"{{{name}: {list(state_size)}}}" if name else str(list(state_size))
    return "{" + ", ".join(f"{name}: {list(shape)}" for name, shape in state_size.items()) + "}"


def _stacked(state_size: Shape, history_len: int) -> Shape:
    *others, last = (*state_size, 1) if needs_axis(state_size) else state_size
    return (*others, last * history_len)


def space_of_states(size: Shapes) -> Space:
    """Return the space of states of ``size``: arrays of numbers, by name if they have names."""
    if not isinstance(size, Mapping):
        return {"type": "Box", "shape": list(size)}
    return {"type": "Dict", "spaces": {name: space_of_states(of) for name, of in size.items()}}


def action_shape_of(size: int | Shape) -> Shape:
    """Return the shape of an action of so many numbers, or of this shape; () for a number."""
    return size if isinstance(size, tuple) else (size,)

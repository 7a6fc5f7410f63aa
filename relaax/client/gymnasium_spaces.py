"""Gymnasium's spaces: the leaves of nested ones, and those that RLX cannot carry."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from relaax.errors import ConfigurationError
from relaax.observations import SEPARATOR
from relaax.spaces import NO_BOUND, Space, box

GymnasiumSpace: TypeAlias = spaces.Space[Any]

#: Of more numbers, bounds are announced only where all have the same: a hello is no longer than
#: 64 KiB where that is all that the server expects.
_MOST_BOUNDS = 1024

_NESTED = (spaces.Dict, spaces.Tuple)


class UnsupportedSpace(ConfigurationError):
    """RLX cannot carry values of this space."""


@dataclass(frozen=True)
class Leaf:
    """A space that holds no others, and the way to it from the outermost one."""

    keys: tuple[Any, ...]
    space: GymnasiumSpace

    @property
    def name(self) -> str:
        """The keys, joined by ``/``; the empty text for a space that is not nested."""
        return SEPARATOR.join(str(key) for key in self.keys)

    def value_in(self, values: Any) -> Any:
        """Return this leaf's part of a value of the outermost space."""
        for key in self.keys:
            values = values[key]
        return values


def is_nested(space: GymnasiumSpace) -> bool:
    """Return whether ``space`` is a Dict or a Tuple."""
    return isinstance(space, _NESTED)


def leaves(space: GymnasiumSpace) -> list[Leaf]:
    """Return the leaves of ``space``, in its order; ``space`` itself if it is not nested."""
    return list(_leaves(space, ()))


def rebuilt(space: GymnasiumSpace, parts: Iterable[Any]) -> Any:
    """Return dicts and tuples like ``space`` with ``parts`` for its leaves, in their order."""
    return _rebuilt(space, iter(parts))


def described(leaf: Leaf) -> str:
    """Return ``leaf`` for people, with its name if it has one."""
    return f"{leaf.space} ({leaf.name!r})" if leaf.keys else str(leaf.space)


def box_as_json(space: spaces.Box) -> Space:
    """Return a Box with its type, shape and bounds, None where there is no bound."""
    announced = box(np.dtype(space.dtype).name, space.shape)
    for name, bound in (("low", space.low), ("high", space.high)):
        if bound.size <= _MOST_BOUNDS or (bound == bound.flat[0]).all():
            announced[name] = bound_as_json(bound)
    return announced


def bound_as_json(bound: npt.NDArray[Any]) -> Any:
    """Return one number if all are the same, else nested lists; None for no bound."""
    if bound.size and (bound == bound.flat[0]).all():
        return _number(bound.flat[0])
    numbers = [_number(value) for value in bound.reshape(-1)]
    return np.array(numbers, object).reshape(bound.shape).tolist()


def _number(value: Any) -> float | None:
    """Return a number with the digits that its type has; None for no bound."""
    if not abs(float(value)) < NO_BOUND:
        return None
    return float(str(value)) if isinstance(value, np.floating) else int(value)


def _leaves(space: GymnasiumSpace, keys: tuple[Any, ...]) -> Iterator[Leaf]:
    if not isinstance(space, _NESTED):
        yield Leaf(keys, space)
        return
    inside = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
    for key, inner in inside:
        yield from _leaves(inner, (*keys, key))


def _rebuilt(space: GymnasiumSpace, parts: Iterator[Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _rebuilt(inner, parts) for key, inner in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_rebuilt(inner, parts) for inner in space.spaces)
    return next(parts)

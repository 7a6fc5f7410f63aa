"""Gymnasium's spaces: what lies inside of nested ones, and which cannot be used."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from gymnasium import spaces

from relaax.errors import ConfigurationError
from relaax.observations import SEPARATOR

GymnasiumSpace: TypeAlias = spaces.Space[Any]

_NESTED = (spaces.Dict, spaces.Tuple)


class UnsupportedSpace(ConfigurationError):
    """RLX cannot carry what this space holds."""


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
        """Return its own part of what the outermost space holds."""
        for key in self.keys:
            values = values[key]
        return values


def is_nested(space: GymnasiumSpace) -> bool:
    """Return whether ``space`` is a Dict or a Tuple."""
    return isinstance(space, _NESTED)


def leaves(space: GymnasiumSpace) -> list[Leaf]:
    """Return what lies inside of ``space``, in its order; ``space`` itself if it is not nested."""
    return list(_leaves(space, ()))


def described(leaf: Leaf) -> str:
    """Return ``leaf`` for people, with its name if it has one."""
    return f"{leaf.space} ({leaf.name!r})" if leaf.keys else str(leaf.space)


def _leaves(space: GymnasiumSpace, keys: tuple[Any, ...]) -> Iterator[Leaf]:
    if not isinstance(space, _NESTED):
        yield Leaf(keys, space)
        return
    inside = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
    for key, inner in inside:
        yield from _leaves(inner, (*keys, key))

"""What observations and actions look like, as JSON, so that both ends can compare.

A space is ``{"type": "Box", "dtype": "float32", "shape": [4]}``, ``{"type": "Discrete", "n": 2}``,
``{"type": "MultiDiscrete", "nvec": [3, 2]}``, ``{"type": "MultiBinary", "shape": [5]}`` or
``{"type": "Dict", "spaces": {"name": ...}}``. A ``Tuple`` with a list of spaces is a Dict with the
names "0", "1" and so on. Members beyond these are for people.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from relaax.observations import MAX_NAME_BYTES, SEPARATOR, Observations

Space: TypeAlias = dict[str, Any]

#: The size from which on a bound is none, such as the largest number of float32.
NO_BOUND = 1e30


def box(dtype: str, shape: tuple[int, ...]) -> Space:
    """Return the space of arrays."""
    return {"type": "Box", "dtype": dtype, "shape": list(shape)}


def discrete(n: int) -> Space:
    """Return the space of the integers from 0 to n - 1."""
    return {"type": "Discrete", "n": n}


def space_of(observations: Observations) -> Space:
    """Return the space that each of B observations, [B, ...] or by name, seems to be from."""
    if isinstance(observations, dict):
        parts = {name: space_of(part) for name, part in observations.items()}
        return {"type": "Dict", "spaces": parts}
    return box(observations.dtype.name, observations.shape[1:])


def shape_of(space: Space) -> tuple[int, ...] | None:
    """Return the shape of the arrays in ``space``; None if that is not known, or not one array."""
    match space:
        case {"type": "Box" | "MultiBinary", "shape": list(shape)}:
            return tuple(shape)
        case {"type": "MultiDiscrete", "nvec": list(nvec)}:
            return (len(nvec),)
        case {"type": "Discrete"}:
            return ()
    return None


def numbers_of(space: Space | None) -> int:
    """Return how many numbers there are in one of ``space``; 0 if that is not known."""
    if is_nested(space):
        return sum(numbers_of(inner) for _, inner in members(space or {}))
    shape = None if space is None else shape_of(space)
    return 0 if shape is None else math.prod(shape)


def differ(announced: Space | None, expected: Space | None) -> bool:
    """Return whether what a client announced cannot be what a server's configuration expects.

    Names and shapes are compared, and numbers of actions; not types of numbers, nor bounds.
    """
    if announced is None or expected is None:
        return False
    if is_nested(announced) and is_nested(expected):
        return bool(misfits(announced, expected))
    if is_nested(announced) or is_nested(expected):
        return True
    if "Discrete" in (announced.get("type"), expected.get("type")):
        return (announced.get("type"), announced.get("n")) != (
            expected.get("type"),
            expected.get("n"),
        )
    return shape_of(announced) != shape_of(expected)


def actions_differ(announced: Space | None, expected: Space | None) -> bool:
    """Return whether actions of ``expected`` cannot be taken by an environment of ``announced``.

    Kinds of actions are compared too, and the numbers of each choice.
    """
    if announced is None or expected is None:
        return False
    kinds = [(space.get("type"), space.get("nvec")) for space in (announced, expected)]
    return kinds[0] != kinds[1] or differ(announced, expected)


def misfits(announced: Space, expected: Space) -> list[str]:
    """Return what is wrong with each name of two nested spaces, for people; nothing for others."""
    if not (is_nested(announced) and is_nested(expected)):
        return []
    has, wants = _flat_members(announced), _flat_members(expected)
    return [
        *(f"{name!r} is missing" for name in wants if name not in has),
        *(f"{name!r} is not asked for" for name in has if name not in wants),
        *(
            f"{name!r} is {written(has[name])} instead of {written(wants[name])}"
            for name in wants
            if name in has and (not isinstance(has[name], dict) or differ(has[name], wants[name]))
        ),
    ]


def written(space: Space | None) -> str:
    """Return ``space`` for people."""
    return "an unknown space" if space is None else json.dumps(space)


def is_nested(space: Any) -> bool:
    """Return whether ``space`` is a Dict or a Tuple of spaces."""
    return isinstance(space, dict) and space.get("type") in ("Dict", "Tuple")


def members(space: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Return names and spaces in a Dict, or in a Tuple, whose names are "0", "1" and so on."""
    match space.get("spaces"):
        case dict(by_name):
            return by_name.items()
        case list(in_order):
            return ((str(number), inner) for number, inner in enumerate(in_order))
    return ()


def _flat_members(space: Space) -> dict[str, Any]:
    """Return the spaces in a Dict or Tuple, those of nested ones too, by names joined by ``/``.

    A strange client's names may be of any length: what is inside of a name that is too long to be
    sent is left as it is.
    """
    found: dict[str, Any] = {}
    waiting = [("", space)]
    while waiting:
        prefix, outer = waiting.pop()
        for key, inner in members(outer):
            name = prefix + key
            if is_nested(inner) and len(name) <= MAX_NAME_BYTES:
                waiting.append((name + SEPARATOR, inner))
            else:
                found[name] = inner
    return found

"""Spaces of observations and actions, as JSON, so that both ends can compare them.

A space is ``{"type": "Box", "dtype": "float32", "shape": [4]}``, ``{"type": "Discrete", "n": 2}``,
``{"type": "MultiDiscrete", "nvec": [3, 2]}``, ``{"type": "MultiBinary", "shape": [5]}`` or
``{"type": "Dict", "spaces": {"name": ...}}``. A ``Tuple`` with a list of spaces is a Dict with the
names "0", "1" and so on. A Box may have bounds, ``low`` and ``high``: a number for all, or nested
lists of its shape; None is no bound, and a missing member is not compared. ``start`` of a Discrete
or a MultiDiscrete is the first of its integers, 0 if it is missing. Other members are for people.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.observations import MAX_NAME_BYTES, SEPARATOR, Observations

Space: TypeAlias = dict[str, Any]

#: A bound of this size or larger counts as no bound, for example the largest float32.
NO_BOUND = 1e30

Bounds: TypeAlias = npt.NDArray[np.float64]

#: Bounds are the same if they differ by less, relative to the larger one or to their distance:
#: float32 has seven digits, and so have bounds that are written down.
_SAME_BOUND = 1e-6

#: The member of a server's space of observations that is true for the mask of actions: a client
#: sends it, but need not announce it.
IS_ACTION_MASK = "action_mask"


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


def limits_of(space: Space) -> npt.NDArray[np.uint64] | None:
    """Return the exclusive upper limit of each number of an action in ``space``; None for a Box."""
    match space:
        case {"type": "Discrete", "n": n}:
            return np.asarray(n, np.uint64)
        case {"type": "MultiDiscrete", "nvec": nvec}:
            return np.asarray(nvec, np.uint64)
        case {"type": "MultiBinary"}:
            return np.asarray(2, np.uint64)
    return None


def numbers_of(space: Space | None) -> int:
    """Return how many numbers there are in one of ``space``; 0 if that is not known."""
    if is_nested(space):
        return sum(numbers_of(inner) for _, inner in members(space or {}))
    shape = None if space is None else shape_of(space)
    return 0 if shape is None else math.prod(shape)


def bounds_of(space: Space) -> tuple[Bounds, Bounds]:
    """Return ``low`` and ``high`` of a Box [*shape]; infinite without a bound.

    ValueError for members that are not numeric, or of another shape.
    """
    return _bound(space, "low", -math.inf), _bound(space, "high", math.inf)


def differ(announced: Space | None, expected: Space | None) -> bool:
    """Return whether observations of ``announced`` differ from the ``expected`` ones.

    Names, shapes and numbers of values are compared; types of numbers, bounds and ``start`` if both
    spaces have them. A type may differ if the conversion loses no more than digits. A mask of
    actions need not be announced, nor the name of a single observation beside it.
    """
    if announced is None or expected is None:
        return False
    expected = _to_announce(announced, expected)
    if is_nested(announced) and is_nested(expected):
        return bool(misfits(announced, expected))
    return _are_unlike(announced, expected) or _loses_numbers(announced, expected)


def actions_differ(announced: Space | None, expected: Space | None) -> bool:
    """Return whether actions of ``expected`` cannot be taken by an environment of ``announced``.

    Kinds, shapes, numbers of each choice and ``start`` are compared, and bounds where both have
    them. Types of numbers are not: the environment's end converts them.
    """
    if announced is None or expected is None:
        return False
    kinds = [(space.get("type"), space.get("nvec")) for space in (announced, expected)]
    return kinds[0] != kinds[1] or _are_unlike(announced, expected)


def bounds_differ(announced: Space, expected: Space) -> bool:
    """Return whether two boxes of one shape have other bounds, if both have any.

    ValueError for invalid bounds.
    """
    low, high = bounds_of(announced)
    for has, wants in zip((low, high), bounds_of(expected), strict=True):
        both = np.isfinite(has) & np.isfinite(wants)
        allowed = leeway(np.maximum(np.abs(has), np.abs(wants)), low, high)
        if (np.abs(has[both] - wants[both]) > allowed[both]).any():
            return True
    return False


def leeway(bound: Bounds, low: Bounds, high: Bounds) -> Bounds:
    """Return how far from ``bound``, one of ``low`` and ``high``, another one is the same."""
    span = np.where(np.isfinite(low) & np.isfinite(high), high - low, 0.0)
    return np.asarray(_SAME_BOUND * np.maximum(np.abs(bound), span))


def misfits(announced: Space, expected: Space) -> list[str]:
    """Return the differences of two nested spaces by name, for people; nothing for others."""
    expected = _to_announce(announced, expected)
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


def _are_unlike(announced: Space, expected: Space) -> bool:
    if is_nested(announced) or is_nested(expected):
        return True
    if "Discrete" in (kinds := [space.get("type") for space in (announced, expected)]):
        members_of = [(space.get("n"), space.get("start", 0)) for space in (announced, expected)]
        return kinds[0] != kinds[1] or members_of[0] != members_of[1]
    if shape_of(announced) != shape_of(expected):
        return True
    try:
        if kinds == ["MultiDiscrete"] * 2:
            return bool((_start(announced) != _start(expected)).any())
        return kinds == ["Box"] * 2 and bounds_differ(announced, expected)
    except ValueError:  # of a strange client's announcement
        return True


def _loses_numbers(announced: Space, expected: Space) -> bool:
    """Return whether numbers of one type become others in another one, and not only shorter."""
    if "dtype" not in announced or "dtype" not in expected:
        return False
    try:
        has, wants = np.dtype(announced["dtype"]), np.dtype(expected["dtype"])
    except (TypeError, ValueError):
        return True
    becomes_float = wants.kind == "f" and has.kind in "biuf"
    return not becomes_float and not np.can_cast(has, wants, "safe")


def _start(space: Space) -> npt.NDArray[Any]:
    """Return the first integers of a MultiDiscrete."""
    try:
        return np.broadcast_to(np.array(space.get("start", 0), np.int64), (len(space["nvec"]),))
    except (TypeError, OverflowError) as error:
        raise ValueError(f"start must be integers, is {space['start']!r:.60}") from error


def _bound(space: Space, name: str, none: float) -> Bounds:
    shape = shape_of(space) or ()
    try:
        shape = tuple(map(int, shape))
        numbers = np.array(space.get(name), np.float64)  # None becomes NaN
        numbers = np.broadcast_to(numbers if numbers.size == 1 else numbers.reshape(shape), shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{name} must be one number, or lists of numbers of shape {list(shape)}"
        ) from error
    return np.where(np.abs(numbers) < NO_BOUND, numbers, none)


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


def mask_name(space: Space | None) -> str | None:
    """Return the name of the mask of actions in a server's space of observations, if it has one."""
    found = _flat_members(space) if space is not None and is_nested(space) else {}
    return next((name for name, part in found.items() if _is_mask(part)), None)


def names_beside(mask: str, space: Space) -> list[str]:
    """Return the names of all other observations in ``space``."""
    return [name for name in _flat_members(space) if name != mask]


def _is_mask(part: Any) -> bool:
    return isinstance(part, dict) and part.get(IS_ACTION_MASK) is True


def _to_announce(announced: Space, expected: Space) -> Space:
    """Return ``expected`` without the parts that ``announced`` may leave out."""
    mask = mask_name(expected)
    if mask is None or (is_nested(announced) and mask in _flat_members(announced)):
        return expected
    rest = {name: part for name, part in _flat_members(expected).items() if name != mask}
    if len(rest) == 1 and not is_nested(announced):
        (alone,) = rest.values()
        return dict(alone)
    return {"type": "Dict", "spaces": rest}


def _flat_members(space: Space) -> dict[str, Any]:
    """Return the spaces in a Dict or Tuple, also of nested ones, by names joined by ``/``.

    A strange client's names may be of any length: spaces below a name that is too long to be sent
    are left as they are.
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

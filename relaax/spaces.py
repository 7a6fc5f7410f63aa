"""What observations and actions look like, as JSON, so that both ends can compare.

A space is ``{"type": "Box", "dtype": "float32", "shape": [4]}``, ``{"type": "Discrete", "n": 2}``,
``{"type": "MultiDiscrete", "nvec": [3, 2]}``, ``{"type": "MultiBinary", "shape": [5]}`` or
``{"type": "Dict", "spaces": {"name": ...}}``. Members beyond these are for people.
"""

import json
from typing import Any, TypeAlias

import numpy as np

Space: TypeAlias = dict[str, Any]


def box(dtype: str, shape: tuple[int, ...]) -> Space:
    """Return the space of arrays."""
    return {"type": "Box", "dtype": dtype, "shape": list(shape)}


def discrete(n: int) -> Space:
    """Return the space of the integers from 0 to n - 1."""
    return {"type": "Discrete", "n": n}


def space_of(array: "np.ndarray[Any, Any]") -> Space:
    """Return the space that an observation seems to be from."""
    return box(array.dtype.name, array.shape)


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


def differ(announced: Space | None, expected: Space | None) -> bool:
    """Return whether what a client announced cannot be what a server's configuration expects.

    Shapes are compared, and numbers of actions; not types of numbers, nor bounds.
    """
    if announced is None or expected is None:
        return False
    if "Discrete" in (announced.get("type"), expected.get("type")):
        return (announced.get("type"), announced.get("n")) != (
            expected.get("type"),
            expected.get("n"),
        )
    return shape_of(announced) != shape_of(expected)


def written(space: Space | None) -> str:
    """Return ``space`` for people."""
    return "an unknown space" if space is None else json.dumps(space)

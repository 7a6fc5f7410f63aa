"""Actions of Gymnasium's spaces as the server's numbers, in both directions.

The server counts choices from 0, knows no bounds, and has one array for the actions of a Dict or a
Tuple, in whose order their numbers lie one behind the other.

An environment whose safety layer, limits or operator change actions reports the executed one in
``info["executed_action"]``, as an action of its action space. Vector environments report actions
of several environments, with a mask in ``infos["_executed_action"]``.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from operator import getitem
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from relaax.client.gymnasium_spaces import (
    GymnasiumSpace,
    Leaf,
    UnsupportedSpace,
    bound_as_json,
    box_as_json,
    described,
    is_nested,
    leaves,
    rebuilt,
)
from relaax.errors import ProtocolError
from relaax.spaces import Space, box, discrete

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

#: Spaces of integers, each of a few values.
_CHOICES = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)

#: The key of an environment's info.
EXECUTED_ACTION = "executed_action"


class UnusableAction(ProtocolError):
    """The server's action does not fit the environment's action space."""


ActionDecoder: TypeAlias = Callable[[Any], Any]
"""Makes the argument of ``env.step`` of the server's actions, for one environment or several.

``UnusableAction`` if they do not fit.
"""


def action_decoder(space: GymnasiumSpace) -> ActionDecoder:
    """Return the decoder for actions of ``space``; ``UnsupportedSpace`` if it has none."""
    return _decoder_of(space).one


def vector_action_decoder(space: GymnasiumSpace) -> ActionDecoder:
    """Return the decoder for actions [N, ...] of N environments with one ``space``.

    UnsupportedSpace if no algorithm can choose its actions.
    """
    return _decoder_of(space).many


def action_space_as_json(space: GymnasiumSpace) -> Space:
    """Return the space of the actions that are asked for; raise ``UnsupportedSpace``."""
    inside = _usable(space)
    if is_nested(space):
        return _joined_as_json(inside)
    match space:
        case spaces.Discrete():
            return discrete(int(space.n))
        case spaces.MultiBinary():
            return {"type": "MultiBinary", "shape": list(space.shape)}
        case spaces.Box():
            return box_as_json(space)
    return {"type": "MultiDiscrete", "nvec": _counts_of(space).tolist()}


def _joined_as_json(inside: list[Leaf]) -> Space:
    """Return one space for the numbers of several, one behind the other."""
    if not isinstance(inside[0].space, spaces.Box):
        counts = np.concatenate([_counts_of(leaf.space) for leaf in inside])
        return {"type": "MultiDiscrete", "nvec": counts.tolist()}
    low, high = (
        np.concatenate([getattr(leaf.space, name).reshape(-1) for leaf in inside])
        for name in ("low", "high")
    )
    bounds = {"low": bound_as_json(low), "high": bound_as_json(high)}
    return {**box("float32", low.shape), **bounds}


def _usable(space: GymnasiumSpace) -> list[Leaf]:
    """Return the leaves of ``space``; UnsupportedSpace if a server cannot choose its actions."""
    inside = leaves(space)
    for leaf in inside:
        if not isinstance(leaf.space, (spaces.Box, *_CHOICES)):
            raise UnsupportedSpace(
                f"actions of {described(leaf)} cannot be asked for: Discrete, MultiDiscrete, "
                "MultiBinary or Box is needed; gymnasium.wrappers.TransformAction can give the "
                "environment such a space"
            )
    if len({isinstance(leaf.space, spaces.Box) for leaf in inside}) != 1:
        raise UnsupportedSpace(
            f"actions of {space} cannot be asked for: either all spaces inside are Box, or all are "
            "Discrete, MultiDiscrete or MultiBinary; gymnasium.wrappers.TransformAction can give "
            "the environment such a space"
        )
    return inside


def _decoder_of(space: GymnasiumSpace) -> "_Choices | _Numbers":
    inside = _usable(space)
    kind = _Numbers if isinstance(inside[0].space, spaces.Box) else _Choices
    return kind(space, inside)


class _Decoder:
    """Takes arrays [N, width] apart, whose columns are the numbers of a space's leaves."""

    def __init__(self, space: GymnasiumSpace, inside: list[Leaf]) -> None:
        self._space, self._inside = space, inside
        widths = [int(np.prod(leaf.space.shape, dtype=np.int64)) for leaf in inside]
        self._ends = np.cumsum(widths)
        self._width = sum(widths)

    def one(self, action: Any) -> Any:
        """Return the argument of ``step`` for an action."""
        if not isinstance(action, np.ndarray | list | int | float):
            raise self._unusable(action)
        parts = self._parts(np.asarray(action)[np.newaxis])
        pairs = zip(self._inside, parts, strict=True)
        return rebuilt(self._space, [_first(leaf.space, part) for leaf, part in pairs])

    def many(self, actions: Array) -> Any:
        """Return the argument of ``step`` for actions [N, ...] of N environments."""
        return rebuilt(self._space, self._parts(actions))

    def _parts(self, actions: Array) -> list[Array]:
        """Return the actions [N, ...] of each leaf."""
        if actions.size != len(actions) * self._width:
            raise self._unusable(actions)
        rows = self._checked(actions.reshape(len(actions), self._width))
        columns = [rows] if len(self._ends) == 1 else np.split(rows, self._ends[:-1], axis=1)
        return [self._formed(*each) for each in zip(self._inside, columns, strict=True)]

    def _checked(self, rows: Array) -> Array:
        raise NotImplementedError

    def _formed(self, leaf: Leaf, rows: Array) -> Array:
        raise NotImplementedError

    def _unusable(self, action: Any) -> UnusableAction:
        raise NotImplementedError


class _Numbers(_Decoder):
    """Numbers of boxes: brought to their shapes and types, and clipped to their bounds.

    The limits of the type are bounds, too. Numbers are rounded if a box holds integers.
    """

    def __init__(self, space: GymnasiumSpace, inside: list[Leaf]) -> None:
        super().__init__(space, inside)
        bounds = [_bounds_of(leaf.space) for leaf in inside]
        self._low, self._high = (np.concatenate(each) for each in zip(*bounds, strict=True))

    def _checked(self, rows: Array) -> Array:
        clipped: Array = np.clip(rows.astype(np.float64), self._low, self._high)
        return clipped

    def _formed(self, leaf: Leaf, rows: Array) -> Array:
        dtype = np.dtype(leaf.space.dtype)
        rows = np.rint(rows) if dtype.kind in "biu" else rows
        return rows.reshape(len(rows), *leaf.space.shape).astype(dtype)

    def _unusable(self, action: Any) -> UnusableAction:
        return UnusableAction(
            f"the environment takes {self._width} numbers for {self._space}, the server sent "
            f"{_short(action)}; action_size in the server's configuration should be {self._width}"
        )


class _Choices(_Decoder):
    """Integers, each from 0 to its count - 1; they begin at the ``start`` of their space."""

    def __init__(self, space: GymnasiumSpace, inside: list[Leaf]) -> None:
        super().__init__(space, inside)
        self._counts = np.concatenate([_counts_of(leaf.space) for leaf in inside])

    def one(self, action: Any) -> Any:
        """Return the argument of ``step`` for an action."""
        space = self._space
        if isinstance(space, spaces.Discrete) and type(action) is int and 0 <= action < space.n:
            return int(space.start) + action  # as nearly always
        return super().one(action)

    def _checked(self, rows: Array) -> Array:
        outside = (rows < 0) | (rows >= self._counts)
        if outside.any():
            row, place = np.argwhere(outside)[0]
            raise UnusableAction(
                f"number {place} of an action for {self._space} is from 0 to "
                f"{self._counts[place] - 1}, the server sent {rows[row, place]}; action_size in "
                "the server's configuration should fit"
            )
        return rows.astype(np.int64, copy=False)

    def _parts(self, actions: Array) -> list[Array]:
        is_one = isinstance(self._space, spaces.Discrete)
        if actions.dtype.kind not in ("iu" if is_one else "biu") or (is_one and actions.ndim > 1):
            raise self._unusable(actions)
        return super()._parts(actions)

    def _formed(self, leaf: Leaf, rows: Array) -> Array:
        shaped = rows.reshape(len(rows), *leaf.space.shape) + getattr(leaf.space, "start", 0)
        return shaped.astype(leaf.space.dtype, copy=False)

    def _unusable(self, action: Any) -> UnusableAction:
        space, count = self._space, int(self._counts[0])
        takes = f"{self._width} integers"
        if isinstance(space, spaces.Discrete):
            takes = f"an integer from 0 to {count - 1}"
        return UnusableAction(
            f"the environment takes {takes} for {space}, the server sent {_short(action)}; is the "
            "server's algorithm for this space?"
        )


def _counts_of(space: GymnasiumSpace) -> IntArray:
    """Return how many values each number of an action of choices has: [width]."""
    if isinstance(space, spaces.Discrete):
        return np.array([space.n], np.int64)
    if isinstance(space, spaces.MultiDiscrete):
        counts: IntArray = space.nvec.reshape(-1).astype(np.int64)
        return counts
    return np.full(int(np.prod(space.shape)), 2)


def _bounds_of(space: spaces.Box) -> tuple[Array, Array]:
    """Return the bounds of the numbers of a Box, which its type can hold, too: float64 [width]."""
    dtype = np.dtype(space.dtype)
    lowest, highest = 0.0, 1.0
    if dtype.kind == "f":
        lowest, highest = float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    elif dtype.kind != "b":
        limits = np.iinfo(dtype)
        # The largest 64-bit integer is no 64-bit float: the float below the next power of two is.
        lowest, highest = float(limits.min), float(np.nextafter(float(limits.max + 1), 0.0))
    low = np.maximum(space.low.astype(np.float64), lowest)
    high = np.minimum(space.high.astype(np.float64), highest)
    return low.reshape(-1), high.reshape(-1)


def _first(space: GymnasiumSpace, values: Array) -> Any:
    # A Box takes an array without dimensions, where Discrete takes a number.
    return values[0, ...] if isinstance(space, spaces.Box) else values[0]


def _short(action: Any) -> str:
    if isinstance(action, np.ndarray):
        return f"an array of shape {action.shape}"
    return repr(action)[:64]


class ExecutedActionReader:
    """Reads executed actions of one ``space``, which has been found usable.

    Actions equal to the environment's input are not reported. ValueError for actions outside the
    space: of another shape, of another kind of numbers, or beyond its bounds.
    """

    def __init__(self, space: GymnasiumSpace) -> None:
        self._leaves = leaves(space)

    def of_one(self, info: Mapping[str, Any], made: Any, sent: Any) -> Any:
        """Return the executed action in the form of the server's, ``sent``; None if they are equal.

        ``made`` is the environment's input.
        """
        if info.get(EXECUTED_ACTION) is None:
            return None
        infos, place = {EXECUTED_ACTION: [info[EXECUTED_ACTION]]}, np.ones(1, np.bool_)
        _, actions = self.of_many(infos, place, [made], np.asarray(sent)[np.newaxis])
        if not len(actions):
            return None
        return actions[0].item() if isinstance(sent, int) else actions[0]

    def of_many(
        self, infos: Mapping[str, Any], of: BoolArray, made: Any, sent: Array
    ) -> tuple[BoolArray, Array]:
        """Return which environments executed other actions, bool [N], and these: [X, ...].

        of: bool [N], the environments to look at. ``sent`` [N, ...] are the server's actions,
        ``made`` is the environments' input.
        """
        has = np.zeros(len(sent), np.bool_)
        executed = infos.get(EXECUTED_ACTION)
        if executed is None:
            return has, sent[:0]
        has = of & _are_there(infos, executed, len(sent))
        if not has.any():
            return has, sent[:0]
        (places,) = np.nonzero(has)
        rows = self._rows(executed, places)
        differ = (rows != self._rows(made, places)).any(axis=1)
        has[places[~differ]] = False
        return has, _formed(rows[differ], sent[has])

    def _rows(self, actions: Any, places: IntArray) -> Array:
        """Return the actions at ``places`` [X] as the server counts: [X, width]."""
        columns = [_encoded(leaf, _read(leaf, actions, places)) for leaf in self._leaves]
        return np.concatenate(columns, axis=1)


def _are_there(infos: Mapping[str, Any], executed: Any, count: int) -> BoolArray:
    """Return which of so many environments report an action; all, where there is no mask."""
    mask = infos.get(f"_{EXECUTED_ACTION}")
    if mask is None:
        mask = np.ones(count, np.bool_)
    if isinstance(executed, list) or getattr(executed, "dtype", None) == np.object_:
        mask = mask & np.array([action is not None for action in executed])
    return np.asarray(mask, np.bool_)


def _read(leaf: Leaf, actions: Any, places: IntArray) -> Array:
    """Return the values of one leaf of the actions at ``places`` [X], as [X, ...]."""
    try:
        return _column(leaf.keys, actions, places)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{_of(leaf)} cannot be read: {error!r:.100}") from error


def _column(keys: tuple[Any, ...], actions: Any, places: IntArray) -> Array:
    """Return the values behind ``keys``, [X, ...].

    ``actions`` are a list or an array of objects, one for each environment, or dicts and tuples of
    arrays [N, ...], or of lists of objects.
    """
    if isinstance(actions, list) or getattr(actions, "dtype", None) == np.object_:
        return np.stack([np.asarray(_inside(actions[place], keys)) for place in places.tolist()])
    if not keys:
        return np.asarray(actions)[places]
    return _column(keys[1:], actions[keys[0]], places)


def _inside(action: Any, keys: tuple[Any, ...]) -> Any:
    return reduce(getitem, keys, action)


def _encoded(leaf: Leaf, values: Array) -> Array:
    """Return actions [X, ...] of one space as the server counts: [X, width]."""
    space = leaf.space
    shape = space.shape or ()
    if values.shape[1:] != shape:
        raise ValueError(f"{_of(leaf)} has shape {list(values.shape[1:])}, not {list(shape)}")
    is_box = isinstance(space, spaces.Box)
    if is_box:
        kinds = {"f": "fiu", "b": "b"}.get(np.dtype(space.dtype).kind, "iu")
        low, high = space.low, space.high
    else:
        kinds = "biu" if isinstance(space, spaces.MultiBinary) else "iu"
        low = getattr(space, "start", 0)
        high = low + _counts_of(space).reshape(shape) - 1
    if values.dtype.kind not in kinds:
        raise ValueError(f"{_of(leaf)} has dtype {values.dtype}, and must be of {space.dtype}")
    values = values.astype(space.dtype) if is_box else values
    outside = ~((values >= low) & (values <= high))
    if outside.any():
        raise ValueError(f"{_of(leaf)} holds {values[outside][0]}, which is not of the space")
    numbers = values if is_box else values.astype(np.int64) - low
    return numbers.reshape(len(values), -1)


def _formed(rows: Array, sent: Array) -> Array:
    """Return actions [X, width] in the shape and type of ``sent`` [X, ...]."""
    return rows.reshape(sent.shape).astype(sent.dtype)


def _of(leaf: Leaf) -> str:
    return f'info["{EXECUTED_ACTION}"] of an environment whose action space is {described(leaf)}'

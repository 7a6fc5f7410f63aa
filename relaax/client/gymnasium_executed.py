"""The executed actions of Gymnasium's environments as actions of the server.

An environment whose safety layer, limits or operator change actions reports the executed one in
``info["executed_action"]``, as an action of its action space. Vector environments report actions
of several environments, with a mask in ``infos["_executed_action"]``.
"""

from collections.abc import Mapping
from functools import reduce
from operator import getitem
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from relaax.client.gymnasium_spaces import GymnasiumSpace, Leaf, described, leaves

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

#: The key of an environment's info.
EXECUTED_ACTION = "executed_action"


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
        executed = info.get(EXECUTED_ACTION)
        if executed is None:
            return None
        only = np.zeros(1, np.int64)
        rows = self._rows([executed], only)
        if np.array_equal(rows, self._rows([made], only)):
            return None
        action = _formed(rows, np.asarray(sent)[np.newaxis])[0]
        return action.item() if isinstance(sent, int) else action

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
    if isinstance(executed, np.ndarray) and executed.dtype == np.object_:
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
    low, high, kinds = _range_of(space)
    if values.dtype.kind not in kinds:
        raise ValueError(f"{_of(leaf)} has dtype {values.dtype}, and must be of {space.dtype}")
    if isinstance(space, spaces.Box):
        values = values.astype(space.dtype)
    outside = ~((values >= low) & (values <= high))
    if outside.any():
        raise ValueError(f"{_of(leaf)} holds {values[outside][0]}, which is not of the space")
    if not isinstance(space, spaces.Box):
        values = values.astype(np.int64) - low
    return values.reshape(len(values), -1)


def _range_of(space: GymnasiumSpace) -> tuple[Any, Any, str]:
    """Return the lowest and the highest values, and the kinds of numbers that may be given."""
    match space:
        case spaces.Discrete():
            return space.start, space.start + space.n - 1, "iu"
        case spaces.MultiDiscrete():
            return space.start, space.start + space.nvec - 1, "iu"
        case spaces.Box():
            kinds = {"f": "fiu", "b": "b"}.get(np.dtype(space.dtype).kind, "iu")
            return space.low, space.high, kinds
    return 0, 1, "biu"


def _formed(rows: Array, sent: Array) -> Array:
    """Return actions [X, width] in the shape and type of ``sent`` [X, ...]."""
    return rows.reshape(sent.shape).astype(sent.dtype)


def _of(leaf: Leaf) -> str:
    return f'info["{EXECUTED_ACTION}"] of an environment whose action space is {described(leaf)}'

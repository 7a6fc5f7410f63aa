"""The actions that an algorithm may return, by the action space of its configuration."""

from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import AgentError
from relaax.spaces import Space, limits_of, shape_of, written

Array = npt.NDArray[Any]

_UNSIGNED = np.dtype(np.uint64)
_INTEGER, _FLOAT, _DOUBLE = np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.float64)


class UnusableActions(AgentError):
    """An algorithm returned an action that fits no environment of its action space.

    The client has done nothing wrong; but asking again would not help: the algorithm must change.
    """


class ActionRule:
    """Which actions [A, ...] fit an action space: their type, shape and range.

    algorithm: its name in errors. Actions of a Box are finite, and may lie outside of its bounds,
    which belong to the environment, but not outside of an integer type. Without a space any finite
    action fits; None does not.
    """

    def __init__(self, space: Space | None, algorithm: str) -> None:
        self._space = space
        self._algorithm = algorithm
        #: Of one action; None where any will do.
        self.shape = None if space is None else shape_of(space)
        #: uint64 [...]: each number is below its limit, taken as unsigned; None for a Box.
        self.limits = None if space is None else limits_of(space)
        self._integer = _integer_type_of(space)
        #: The usual types of numbers: others are looked at more closely.
        self.dtypes: tuple[np.dtype[Any], ...] = (_FLOAT, _DOUBLE)
        if self.limits is not None:
            self.dtypes = (_INTEGER,)
        elif space is None:
            self.dtypes = (_INTEGER, _FLOAT, _DOUBLE)

    def fits(self, actions: Any, count: int) -> bool:
        """Return whether ``count`` actions are of the usual kind and in their range, as most are.

        Others are looked at more closely by ``counted`` and ``usable``, which name the fault.
        """
        if (
            type(actions) is not np.ndarray
            or actions.dtype not in self.dtypes
            or actions.shape[:1] != (count,)
            or (actions.shape[1:] != self.shape and self.shape is not None)
        ):
            return False
        if self.limits is None:
            within = np.isfinite(actions)
        else:
            within = actions.view(_UNSIGNED) < self.limits
        return bool(np.logical_and.reduce(within, axis=None))

    def counted(self, actions: Any, count: int) -> Any:
        """Return ``actions`` as an array of ``count`` rows; without a space, as they are.

        UnusableActions for another number of rows, and for anything but an array.
        """
        if not isinstance(actions, np.ndarray) and self._space is not None:
            try:
                actions = np.asarray(actions)
            except ValueError as error:
                raise self._error(f"no array of numbers: {actions!r:.60}") from error
        try:
            found = len(actions)
        except TypeError as error:
            text = f"{actions!r:.60} for {count} environments"
            raise self._error(text) from error
        if found != count:
            raise self._error(f"{found} actions for {count} environments")
        return actions

    def usable(self, actions: Any) -> Any:
        """Return actions as they are sent; UnusableActions names the fault.

        Actions of a discrete space become 64-bit integers. Actions of a Box are floats, or integers
        if both the space and the actions are. Without a space they stay as they are.
        """
        if len(actions) == 0:
            return actions
        if self._space is None:
            numbers = _numbers_in(actions)
            if numbers.dtype.kind == "O" and any(action is None for action in actions):
                raise self._error("None")
            self._require_finite(numbers)
            return actions
        if actions.dtype.kind == "O" and any(action is None for action in actions.flat):
            raise self._error("None")
        if self.shape is not None and actions.shape[1:] != self.shape:
            raise self._error(
                f"actions of shape {list(actions.shape[1:])} instead of {list(self.shape)}"
            )
        if self.limits is not None:
            return self._integers(actions, self.limits)
        if actions.dtype.kind not in "iuf":
            raise self._error(f"an array of {actions.dtype}: {_first(actions)}")
        if self._integer is not None and actions.dtype.kind != "f":
            return self._of_type(self._integer, actions)
        self._require_finite(actions)
        return actions if actions.dtype.kind == "f" else actions.astype(np.float32)

    def unsendable(self, error: Exception) -> UnusableActions:
        """Return the error for actions that a codec cannot send."""
        return self._error(f"an unusable action: {error}")

    def _require_finite(self, numbers: Array) -> None:
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            place = tuple(np.argwhere(~np.isfinite(numbers))[0])
            raise self._error(f"the action {numbers[place]}, which is not finite")

    def _integers(self, array: Array, limits: Array) -> Array:
        is_binary = self._space is not None and self._space.get("type") == "MultiBinary"
        if array.dtype.kind not in ("biu" if is_binary else "iu"):
            raise self._error(f"an array of {array.dtype}, not of integers: {_first(array)}")
        numbers = array.astype(np.int64)
        outside = numbers.view(np.uint64) >= limits
        if outside.any():
            place = tuple(np.argwhere(outside)[0])
            limit = np.broadcast_to(limits, array.shape)[place]
            raise self._error(f"the action {array[place]}, which is not from 0 to {int(limit) - 1}")
        return numbers

    def _of_type(self, dtype: np.dtype[Any], integers: Array) -> Array:
        limits = np.iinfo(dtype)
        outside = (integers < limits.min) | (integers > limits.max)
        if outside.any():
            raise self._error(f"the action {integers[outside][0]}, which is no {dtype}")
        return integers.astype(dtype)

    def _error(self, given: str) -> UnusableActions:
        space = "" if self._space is None else f"; its action space is {written(self._space)}"
        return UnusableActions(f"the algorithm {self._algorithm} returned {given}{space}")


def _first(actions: Array) -> str:
    """Return the first of some actions, for people."""
    return f"{actions[0]!s:.60}"


def _numbers_in(actions: Any) -> Array:
    """Return the numbers in actions of any form; nothing if they are of another kind."""
    try:
        return np.asarray(actions)
    except ValueError:
        return np.zeros(0)


def _integer_type_of(space: Space | None) -> np.dtype[Any] | None:
    """Return the type of a Box of integers."""
    if space is None or space.get("type") != "Box":
        return None
    dtype = np.dtype(space.get("dtype", "float32"))
    return dtype if dtype.kind in "iu" else None

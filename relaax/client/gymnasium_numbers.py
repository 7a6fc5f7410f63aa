"""From arrays of numbers to actions of one Discrete, MultiDiscrete, MultiBinary or Box.

The server counts from 0 and knows no bounds: numbers begin at the ``start`` of their space here,
and arrays are clipped to its bounds.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from relaax.client.gymnasium_spaces import GymnasiumSpace
from relaax.errors import ProtocolError

Array = npt.NDArray[Any]


class UnusableAction(ProtocolError):
    """The server's action does not fit the environment's action space."""


class DiscreteActions:
    """Actions 0 to n - 1 of the server, ``start`` to ``start + n - 1`` of the environment."""

    def __init__(self, space: spaces.Discrete) -> None:
        self._n = int(space.n)
        self._start = int(space.start)

    def __call__(self, action: Any) -> int:
        """Return the environment's number for ``action``."""
        if isinstance(action, bool) or not isinstance(action, int):
            raise UnusableAction(
                f"the environment takes an integer from 0 to {self._n - 1}, the server sent "
                f"{describe(action)}; is the server's algorithm for discrete actions?"
            )
        if not 0 <= action < self._n:
            raise UnusableAction(
                f"the environment takes the actions 0 to {self._n - 1}, the server sent {action}; "
                f"action_size in the server's configuration should be {self._n}"
            )
        return self._start + action


class VectorDiscreteActions(DiscreteActions):
    """The actions of many environments at once: integers [N]."""

    def __call__(self, action: Any) -> Any:
        """Return the environments' numbers for actions [N]."""
        if action.dtype.kind not in "iu" or action.ndim != 1:
            raise UnusableAction(
                f"the environments take integers from 0 to {self._n - 1}, the server sent "
                f"{describe(action)}; is the server's algorithm for discrete actions?"
            )
        if len(action) and (action.min() < 0 or action.max() >= self._n):
            super().__call__(int(action.max() if action.max() >= self._n else action.min()))
        return action + self._start


class BoxActions:
    """An array, brought to the shape and type of the space and clipped to its bounds."""

    def __init__(self, space: spaces.Box) -> None:
        self._clipped = _Clipped(space)

    def __call__(self, action: Any) -> Any:
        """Return ``action`` in the shape, type and bounds of the space."""
        size = self._clipped.size
        if not isinstance(action, np.ndarray | list | float | int) or np.size(action) != size:
            raise UnusableAction(
                f"the environment takes an array of {size} numbers, the server sent "
                f"{describe(action)}; action_size in the server's configuration should be {size}"
            )
        return self._clipped(np.asarray(action), ())


class VectorBoxActions:
    """Arrays [N, ...], of the shape and type of the space and clipped to its bounds."""

    def __init__(self, space: spaces.Box) -> None:
        self._clipped = _Clipped(space)

    def __call__(self, action: Any) -> Any:
        """Return ``action`` [N, ...] in the shape, type and bounds of the space."""
        size = self._clipped.size
        if action.size != len(action) * size:
            raise UnusableAction(
                f"each environment takes {size} numbers, the server sent {describe(action)}; "
                f"action_size in the server's configuration should be {size}"
            )
        return self._clipped(action, (len(action),))


class _Clipped:
    """Brings numbers into a Box: its shape, its bounds, and its type with the limits of that type.

    Numbers are rounded if the Box holds integers.
    """

    def __init__(self, space: spaces.Box) -> None:
        self.size = int(np.prod(space.shape))
        self._shape = space.shape
        self._dtype = np.dtype(space.dtype)
        self._is_whole = self._dtype.kind in "biu"
        lowest, highest = _limits_of(self._dtype)
        self._low = np.maximum(space.low.astype(np.float64), lowest)
        self._high = np.minimum(space.high.astype(np.float64), highest)

    def __call__(self, numbers: Array, before: tuple[int, ...]) -> Any:
        shaped = numbers.reshape((*before, *self._shape)).astype(np.float64)
        if self._is_whole:
            shaped = np.rint(shaped)
        return np.asarray(np.clip(shaped, self._low, self._high)).astype(self._dtype)


def _limits_of(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the smallest and the largest number that fits into ``dtype``."""
    if dtype.kind == "f":
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    if dtype.kind == "b":
        return 0.0, 1.0
    limits = np.iinfo(dtype)
    # The largest 64-bit integer is no 64-bit float: the float below the next power of two is taken.
    return float(limits.min), float(np.nextafter(float(limits.max + 1), 0.0))


class VectorChoices:
    """Integers [N, ...] of a MultiDiscrete or a MultiBinary, each from 0 to its count - 1."""

    def __init__(self, space: spaces.MultiDiscrete | spaces.MultiBinary) -> None:
        self._counts = np.asarray(counts_of(space))
        self._start = np.asarray(getattr(space, "start", 0))
        self._shape = space.shape
        self._dtype = np.dtype(space.dtype)
        self._space = space

    def __call__(self, action: Any) -> Any:
        """Return ``action`` [N, ...] in the shape and type of the space."""
        if action.dtype.kind not in "biu" or action.size != len(action) * len(self._counts):
            raise UnusableAction(
                f"each environment takes {len(self._counts)} integers for {self._space}, the "
                f"server sent {describe(action)}; is the server's algorithm for {self._space}?"
            )
        numbers = action.reshape(len(action), len(self._counts)).astype(np.int64)
        outside = (numbers < 0) | (numbers >= self._counts)
        if outside.any():
            row, place = np.argwhere(outside)[0]
            raise UnusableAction(
                f"number {place} of an action for {self._space} is from 0 to "
                f"{self._counts[place] - 1}, the server sent {numbers[row, place]}"
            )
        shaped = numbers.reshape((len(action), *self._shape)) + self._start
        return shaped.astype(self._dtype)


def width_of(space: GymnasiumSpace) -> int:
    """Return how many numbers an action of a space that is not nested has."""
    return int(np.prod(space.shape, dtype=np.int64))


def counts_of(space: GymnasiumSpace) -> list[int]:
    """Return how many values each number of an action has."""
    match space:
        case spaces.Discrete():
            return [int(space.n)]
        case spaces.MultiDiscrete():
            return [int(count) for count in space.nvec.reshape(-1)]
    return [2] * width_of(space)


def describe(action: Any) -> str:
    """Return ``action`` for people, in short."""
    if isinstance(action, np.ndarray):
        return f"an array of shape {action.shape}"
    return repr(action)[:64]

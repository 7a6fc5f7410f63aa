"""Between Gymnasium's spaces and RLX: observations as states, replies as actions."""

import functools
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from relaax.errors import ConfigurationError, ProtocolError
from relaax.spaces import Space, box

_ARRAY_SPACES = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)


class UnsupportedSpace(ConfigurationError):
    """RLX cannot carry what this space holds."""


class UnusableAction(ProtocolError):
    """The server's action does not fit the environment's action space."""


class StateEncoder(Protocol):
    """Turns an observation into a state."""

    def __call__(self, observation: Any) -> Any:
        """Return ``observation`` as an array."""


class ActionDecoder(Protocol):
    """Turns an action of the server into one of the environment."""

    def __call__(self, action: Any) -> Any:
        """Return what ``env.step`` takes; raise ``UnusableAction`` for what does not fit."""


def state_encoder(space: spaces.Space[Any]) -> StateEncoder:
    """Return how observations of ``space`` are sent; raise ``UnsupportedSpace`` if they cannot be.

    All are sent as arrays of the space's type, discrete ones without a dimension.
    """
    if not isinstance(space, _ARRAY_SPACES) or space.dtype is None:
        raise UnsupportedSpace(
            f"observations of {space} cannot be sent: an array or an integer is needed; "
            "gymnasium.wrappers.FlattenObservation makes one array of a Dict or Tuple"
        )
    return functools.partial(_as_array, dtype=space.dtype)


def action_decoder(space: spaces.Space[Any]) -> ActionDecoder:
    """Return how actions for ``space`` are read; raise ``UnsupportedSpace`` if they cannot be."""
    if isinstance(space, spaces.Discrete):
        return DiscreteActions(int(space.n), int(space.start))
    if isinstance(space, spaces.Box):
        return BoxActions(space)
    raise UnsupportedSpace(f"actions of {space} cannot be asked for: Discrete or Box is needed")


class DiscreteActions:
    """Actions 0 to n - 1 of the server, ``start`` to ``start + n - 1`` of the environment."""

    def __init__(self, n: int, start: int) -> None:
        self._n = n
        self._start = start

    def __call__(self, action: Any) -> int:
        """Return the environment's number for ``action``."""
        if isinstance(action, bool) or not isinstance(action, int):
            raise UnusableAction(
                f"the environment takes an integer from 0 to {self._n - 1}, the server sent "
                f"{_describe(action)}; is the server's algorithm for discrete actions?"
            )
        if not 0 <= action < self._n:
            raise UnusableAction(
                f"the environment takes the actions 0 to {self._n - 1}, the server sent {action}; "
                f"action_size in the server's configuration should be {self._n}"
            )
        return self._start + action


class BoxActions:
    """Arrays, brought to the shape and type of the space and clipped to its bounds."""

    def __init__(self, space: spaces.Box) -> None:
        self._space = space

    def __call__(self, action: Any) -> Any:
        """Return ``action`` in the shape, type and bounds of the space."""
        size = int(np.prod(self._space.shape))
        if not isinstance(action, np.ndarray | list) or np.size(action) != size:
            raise UnusableAction(
                f"the environment takes an array of {size} numbers, the server sent "
                f"{_describe(action)}; action_size in the server's configuration should be {size}"
            )
        values = np.clip(np.reshape(action, self._space.shape), self._space.low, self._space.high)
        return values.astype(self._space.dtype)


def vector_action_decoder(space: spaces.Space[Any]) -> ActionDecoder:
    """Return how actions [N, ...] for N environments of one ``space`` are read."""
    if isinstance(space, spaces.Discrete):
        return VectorDiscreteActions(int(space.n), int(space.start))
    if isinstance(space, spaces.Box):
        return VectorBoxActions(space)
    raise UnsupportedSpace(f"actions of {space} cannot be asked for: Discrete or Box is needed")


class VectorDiscreteActions(DiscreteActions):
    """The actions of many environments at once: integers [N]."""

    def __call__(self, action: Any) -> Any:
        """Return the environments' numbers for actions [N]."""
        if action.dtype.kind not in "iu" or action.ndim != 1:
            raise UnusableAction(
                f"the environments take integers from 0 to {self._n - 1}, the server sent "
                f"{_describe(action)}; is the server's algorithm for discrete actions?"
            )
        if len(action) and (action.min() < 0 or action.max() >= self._n):
            super().__call__(int(action.max() if action.max() >= self._n else action.min()))
        return action + self._start


class VectorBoxActions:
    """Arrays [N, ...], of the shape and type of the space and clipped to its bounds."""

    def __init__(self, space: spaces.Box) -> None:
        self._space = space

    def __call__(self, action: Any) -> Any:
        """Return ``action`` [N, ...] in the shape, type and bounds of the space."""
        size = int(np.prod(self._space.shape))
        if action.size != len(action) * size:
            raise UnusableAction(
                f"each environment takes {size} numbers, the server sent {_describe(action)}; "
                f"action_size in the server's configuration should be {size}"
            )
        shaped = action.reshape(len(action), *self._space.shape)
        return np.clip(shaped, self._space.low, self._space.high).astype(self._space.dtype)


def space_as_json(space: spaces.Space[Any]) -> Space | None:
    """Return ``space`` as it is sent to the server; None if version 2 cannot describe it."""
    match space:
        case spaces.Discrete():
            return {"type": "Discrete", "n": int(space.n)}
        case spaces.MultiDiscrete():
            return {"type": "MultiDiscrete", "nvec": space.nvec.tolist()}
        case spaces.MultiBinary():
            return {"type": "MultiBinary", "shape": list(space.shape)}
        case spaces.Box():
            return box(np.dtype(space.dtype).name, space.shape)
        case _:
            return None


def _as_array(observation: Any, dtype: npt.DTypeLike) -> Any:
    """Return an observation in its space's type, unless that would lose more than digits."""
    array = np.asarray(observation)
    if array.dtype == dtype or not np.can_cast(array.dtype, dtype, "same_kind"):
        return array
    return array.astype(dtype)


def _describe(action: Any) -> str:
    if isinstance(action, np.ndarray):
        return f"an array of shape {action.shape}"
    return repr(action)[:64]

"""From Gymnasium's observations to those of RLX: one array, or several by name.

A Box and a MultiBinary are sent as they are. A Discrete becomes a one-hot vector, and a
MultiDiscrete a one-hot vector for each of its numbers, one behind the other: numbers that are names
of things, which a network cannot compare, become numbers that it can. What lies inside of a Dict or
a Tuple is sent by name.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from relaax.client.checks import required_numbers
from relaax.client.gymnasium_spaces import (
    GymnasiumSpace,
    Leaf,
    UnsupportedSpace,
    box_as_json,
    described,
    is_nested,
    leaves,
)
from relaax.observations import Observations, named
from relaax.spaces import Space, box

Array = npt.NDArray[Any]

#: A larger one-hot vector has too little in it for what it costs.
MAX_ONE_HOT = 65536


class StateEncoder(Protocol):
    """Turns an observation of one environment, or of several at once, into what is sent."""

    def __call__(self, observation: Any) -> Any:
        """Return ``observation`` as an array, or as arrays by name."""


class _LeafEncoder(Protocol):
    """Turns what lies in one array, or in one number, into what is sent."""

    #: What is sent of one environment.
    announced: Space

    def __call__(self, observation: Any) -> Array:
        """Return ``observation`` as an array."""


def state_encoder(space: GymnasiumSpace) -> StateEncoder:
    """Return how observations of ``space`` are sent; raise ``UnsupportedSpace`` if they cannot be.

    The encoder takes an observation of one environment, or those of N in one array for each space.
    """
    if not is_nested(space):
        return _leaf_encoder(Leaf((), space))
    return _NamedEncoder(space)


def observation_space_as_json(space: GymnasiumSpace) -> Space:
    """Return the space of what is sent for ``space``; raise ``UnsupportedSpace``."""
    if not is_nested(space):
        return _leaf_encoder(Leaf((), space)).announced
    encoders = _NamedEncoder(space).encoders
    return {"type": "Dict", "spaces": {name: leaf.announced for name, leaf in encoders.items()}}


def _leaf_encoder(leaf: Leaf) -> _LeafEncoder:
    match leaf.space:
        case spaces.Box():
            return _AsArray(leaf, np.dtype(leaf.space.dtype), box_as_json(leaf.space))
        case spaces.MultiBinary():
            shape = list(leaf.space.shape)
            return _AsArray(leaf, np.dtype(np.int8), {"type": "MultiBinary", "shape": shape})
        case spaces.Discrete():
            return _OneHot(leaf, np.asarray(leaf.space.n), np.asarray(leaf.space.start))
        case spaces.MultiDiscrete():
            return _OneHot(leaf, leaf.space.nvec, np.asarray(getattr(leaf.space, "start", 0)))
    raise UnsupportedSpace(
        f"observations of {described(leaf)} cannot be sent: they have no fixed number of values; "
        "gymnasium.wrappers.FlattenObservation makes numbers of a Text, TransformObservation a Box "
        "of anything"
    )


class _AsArray:
    """Arrays in their space's type."""

    def __init__(self, leaf: Leaf, dtype: np.dtype[Any], announced: Space) -> None:
        self.announced = announced
        self._name = _written_name(leaf)
        self._dtype = dtype

    def __call__(self, observation: Any) -> Array:
        """Return an observation in that type, unless that would lose more than digits.

        TypeError for what is no array of numbers, ValueError for integers that do not fit.
        """
        array = required_numbers(self._name, observation)
        if array.dtype == self._dtype or not np.can_cast(array.dtype, self._dtype, "same_kind"):
            return array
        converted = array.astype(self._dtype)
        if self._dtype.kind in "iu" and (converted != array).any():
            value = array[converted != array].reshape(-1)[0]
            raise ValueError(f"{self._name} holds {value}, and its space is of {self._dtype}")
        return converted


class _OneHot:
    """Integers, each as many numbers as it has values, of which one is 1 and all others are 0."""

    def __init__(self, leaf: Leaf, counts: npt.NDArray[np.integer[Any]], start: Array) -> None:
        self._leaf = leaf
        self._shape = counts.shape
        self._start = start
        self._counts = counts.astype(np.int64).reshape(-1)
        self._offsets = np.cumsum(self._counts) - self._counts
        self._size = sum(self._counts.tolist())
        if self._size > MAX_ONE_HOT:
            raise UnsupportedSpace(
                f"observations of {described(leaf)} would be {self._size} numbers, of which "
                f"{MAX_ONE_HOT} are allowed: gymnasium.wrappers.TransformObservation can make a "
                "Box of them"
            )
        self.announced = box("float32", (self._size,))

    def __call__(self, observation: Any) -> Array:
        """Return one-hot vectors: float32 [size], or [N, size]; ValueError for other integers."""
        numbers = required_numbers(_written_name(self._leaf), observation)
        if numbers.dtype.kind == "f":
            raise ValueError(f"the environment observes {observation} of {described(self._leaf)}")
        numbers = numbers.astype(np.int64) - self._start
        before = numbers.shape[: numbers.ndim - len(self._shape)]
        numbers = numbers.reshape(*before, len(self._counts))
        if ((numbers < 0) | (numbers >= self._counts)).any():
            raise ValueError(f"the environment observes {observation} of {described(self._leaf)}")
        encoded = np.zeros((*before, self._size), np.float32)
        np.put_along_axis(encoded, numbers + self._offsets, 1.0, axis=-1)
        return encoded


class _NamedEncoder:
    """What lies inside of a Dict or a Tuple, by name."""

    def __init__(self, space: GymnasiumSpace) -> None:
        self._leaves = {leaf.name: leaf for leaf in leaves(space)}
        self.encoders = {name: _leaf_encoder(leaf) for name, leaf in self._leaves.items()}
        try:
            named(_by_key(space))
        except ValueError as error:
            raise UnsupportedSpace(f"observations of {space} cannot be sent: {error}") from error

    def __call__(self, observation: Any) -> Observations:
        """Return the arrays of ``observation``, a dict or a tuple, which may hold others."""
        return {
            name: encode(self._leaves[name].value_in(observation))
            for name, encode in self.encoders.items()
        }


def _written_name(leaf: Leaf) -> str:
    return f"the observation[{leaf.name!r}]" if leaf.keys else "the observation"


def _by_key(space: GymnasiumSpace) -> Any:
    """Return the spaces inside of ``space`` as dicts and tuples."""
    if isinstance(space, spaces.Dict):
        return {key: _by_key(inner) for key, inner in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return dict(enumerate(_by_key(inner) for inner in space.spaces))
    return space

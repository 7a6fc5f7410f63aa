"""Gymnasium's observations as observations of RLX: one array, or several by name.

A Box and a MultiBinary are sent as they are. A Discrete becomes a one-hot vector, and a
MultiDiscrete a one-hot vector for each of its numbers, one behind the other: a network cannot
compare numbers that are names of things. The parts of a Dict or a Tuple are sent by name.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

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
    rebuilt,
)
from relaax.observations import Observations, named
from relaax.spaces import Space, box

Array = npt.NDArray[Any]

#: A larger one-hot vector costs more than its information is worth.
MAX_ONE_HOT = 65536


StateEncoder: TypeAlias = Callable[[Any], Any]
"""Encodes observations of one environment, or of several, as an array or as arrays by name."""


def state_encoder(space: GymnasiumSpace) -> StateEncoder:
    """Return the encoder for observations of ``space``; ``UnsupportedSpace`` if it has none.

    The encoder takes an observation of one environment, or N of them in an array for each space.
    """
    if not is_nested(space):
        return _leaf_encoder(Leaf((), space))
    return _NamedEncoder(space)


def observation_space_as_json(space: GymnasiumSpace) -> Space:
    """Return the announced space for ``space``; ``UnsupportedSpace`` if it cannot be sent."""
    if not is_nested(space):
        return _leaf_encoder(Leaf((), space)).announced
    encoders = _NamedEncoder(space).encoders
    return {"type": "Dict", "spaces": {name: leaf.announced for name, leaf in encoders.items()}}


def _leaf_encoder(leaf: Leaf) -> "_AsArray | _OneHot":
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
    """Arrays in their space's type, or in a wider one: nothing is cut off from a float."""

    def __init__(self, leaf: Leaf, dtype: np.dtype[Any], announced: Space) -> None:
        #: The announced space of one environment.
        self.announced = announced
        self._name = _written_name(leaf)
        self._dtype = dtype

    def __call__(self, observation: Any) -> Array:
        """Return an observation in the type of its space, unless that would lose anything.

        Floats keep their type: many spaces are of 32 bits although the environment returns 64.
        Integers in a space of floats become floats. TypeError if the observation is not numeric,
        ValueError for integers that do not fit.
        """
        array = required_numbers(self._name, observation)
        if array.dtype == self._dtype:
            return array
        if self._dtype.kind == "f":
            return array.astype(np.result_type(array.dtype, self._dtype), copy=False)
        return array if array.dtype.kind == "f" else self._as_integers(array)

    def _as_integers(self, array: Array) -> Array:
        converted = array.astype(self._dtype)
        if (converted != array).any():
            value = array[converted != array].reshape(-1)[0]
            raise ValueError(f"{self._name} holds {value}, and its space is of {self._dtype}")
        return converted


class _OneHot:
    """Integers, each encoded as a vector with a 1 at the integer's place and 0 elsewhere."""

    def __init__(self, leaf: Leaf, counts: npt.NDArray[np.integer[Any]], start: Array) -> None:
        self._leaf = leaf
        self._shape = counts.shape
        self._start = start
        self._counts = counts.astype(np.int64).reshape(-1)
        self._offsets = np.cumsum(self._counts) - self._counts
        self._size = sum(self._counts.tolist())
        if self._size > MAX_ONE_HOT:
            raise UnsupportedSpace(
                f"observations of {described(leaf)} would be {self._size} numbers, and at "
                f"most {MAX_ONE_HOT} are allowed: gymnasium.wrappers.TransformObservation can make "
                "a Box of them"
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
    """The parts of a Dict or a Tuple, by name."""

    def __init__(self, space: GymnasiumSpace) -> None:
        self._leaves = {leaf.name: leaf for leaf in leaves(space)}
        self.encoders = {name: _leaf_encoder(leaf) for name, leaf in self._leaves.items()}
        nested = rebuilt(space, leaves(space))
        try:
            named(nested if isinstance(nested, dict) else dict(enumerate(nested)))
        except ValueError as error:
            raise UnsupportedSpace(f"observations of {space} cannot be sent: {error}") from error

    def __call__(self, observation: Any) -> Observations:
        """Return the arrays of ``observation``, a dict or a tuple, which may hold others."""
        return {
            name: encode(self._leaves[name].value_in(observation))
            for name, encode in self.encoders.items()
        }


class KeptObservations:
    """Observations of environments that share a connection, which nothing else can change."""

    def __init__(self, space: GymnasiumSpace) -> None:
        self._space = space
        self._leaves = leaves(space)
        self._encoders = {leaf.keys: _leaf_encoder(leaf) for leaf in self._leaves}
        #: Whether it is floats that came, of each space of bytes.
        self._are_floats: dict[tuple[Any, ...], bool] = {}

    def kept(self, observation: Any) -> Any:
        """Return a copy of ``observation``, in the types in which it is sent.

        TypeError or ValueError if it cannot be sent, has another shape than its space, or changes
        between bytes, which are divided by 255, and floats.
        """
        return self._nested(lambda leaf: self._copy(leaf, leaf.value_in(observation)))

    def together(self, observations: Sequence[Any]) -> Any:
        """Return N observations of ``kept`` in arrays [N, ...] of their types."""
        return self._nested(lambda leaf: np.stack([leaf.value_in(each) for each in observations]))

    def room_for(self, held: Any, observation: Any) -> Any:
        """Return arrays [N, ...], ``held`` where they are of a type that holds ``observation``."""
        return self._nested(lambda leaf: _room_for(leaf.value_in(held), leaf.value_in(observation)))

    def _nested(self, made: Callable[[Leaf], Array]) -> Any:
        return rebuilt(self._space, map(made, self._leaves))

    def _copy(self, leaf: Leaf, observation: Any) -> Array:
        encode = self._encoders[leaf.keys]
        encoded = encode(observation)
        if isinstance(encode, _OneHot):
            return np.array(observation, np.int64)
        if encoded.shape != leaf.space.shape:
            raise ValueError(
                f"{_written_name(leaf)} has shape {list(encoded.shape)}, and its space is "
                f"{leaf.space}"
            )
        if leaf.space.dtype == np.uint8:
            self._require_as_before(leaf, encoded)
        return encoded.copy()

    def _require_as_before(self, leaf: Leaf, encoded: Array) -> None:
        are_floats = encoded.dtype.kind == "f"
        if self._are_floats.setdefault(leaf.keys, are_floats) != are_floats:
            raise ValueError(
                f"{_written_name(leaf)} is of {encoded.dtype}, and before one was of "
                f"{'bytes' if are_floats else 'floats'}: return uint8, as its space says"
            )


def _room_for(held: Array, observation: Array) -> Array:
    if np.can_cast(observation.dtype, held.dtype, "safe"):
        return held
    return np.zeros(held.shape, np.result_type(held.dtype, observation.dtype))


def _written_name(leaf: Leaf) -> str:
    return f"the observation[{leaf.name!r}]" if leaf.keys else "the observation"

"""Checks states and stacks the latest ones into observations."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import InvalidState
from relaax.learning.arrays import aligned_empty, zero_padded

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

#: numpy's kinds of numbers: bool, signed and unsigned integer, float.
NUMBERS = "biuf"

#: Dimensions of an image without channels.
_GREY = 2


class Preprocessor:
    """The last ``history_len`` states of each environment, side by side along the last axis.

    At the start of an episode the first state fills the whole history, so that nothing of the
    episode before is seen; every later state pushes the oldest one out.

    ``state_size`` is the shape of one state; a grey image [H, W] gets an axis to stack along.
    """

    def __init__(self, state_size: tuple[int, ...], history_len: int) -> None:
        self._state_size = state_size
        self._is_grey_image = len(state_size) == _GREY
        self._length = history_len
        self._capacity = 0
        self._histories: Array | None = None

    def check(self, states: Sequence[Any] | Array) -> Array:
        """Return states of B environments as an array [B, ...]; InvalidState if they are none.

        Images of bytes stay so. All else is float32, so that vectors of all clients are of one
        type: bytes are scaled to [0, 1] as a network scales them.
        """
        array = _as_numbers(states)
        if array.dtype == np.uint8 and len(self._state_size) < _GREY:
            array = array / np.float32(255)
        if array.shape[1:] != self._state_size:
            raise InvalidState(
                f"a state has shape {list(array.shape[1:])}, "
                f"the configuration says state_size: {list(self._state_size)}"
            )
        return array[..., np.newaxis] if self._is_grey_image else array

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""
        if self._histories is not None:
            self._histories = zero_padded(self._histories, capacity, axis=0)
        self._capacity = capacity

    def observe(
        self, slots: IntArray, states: Array, starts: BoolArray | None, rows: int = 0
    ) -> Array:
        """Return the observations [B, ...] after new states [B, ...] of ``slots`` [B].

        ``states`` are from ``check``. ``starts`` bool [B]: which are the first of an episode; None:
        not one. Where states are stacked, and ``rows`` is more than B, zeros follow behind the
        observations up to so many rows, so that a batch need not be copied to be padded.
        """
        if self._length == 1:
            return states
        histories = self._histories
        if histories is None or histories.dtype != states.dtype:
            shape = (self._capacity, *states.shape[1:-1], states.shape[-1] * self._length)
            histories = self._histories = np.zeros(shape, states.dtype)
        count = len(slots)
        stacked = aligned_empty((max(count, rows), *histories.shape[1:]), histories.dtype)
        stacked[count:] = 0
        np.take(histories, slots, axis=0, out=stacked[:count])
        self._stack(stacked[:count], states, starts)
        histories[slots] = stacked[:count]
        return stacked

    def _stack(self, histories: Array, newest: Array, starts: BoolArray | None) -> None:
        """Push ``newest`` [B, ...] into ``histories`` [B, ...], which are changed in place."""
        width = newest.shape[-1]
        # One move of the flat array instead of many short ones: what it brings into the last
        # places of each row is overwritten.
        flat = histories.reshape(-1)
        flat[:-width] = flat[width:]
        histories[..., -width:] = newest
        for row in () if starts is None else np.flatnonzero(starts):
            histories[row] = np.concatenate([newest[row]] * self._length, axis=-1)


def stacked_shape(state_size: tuple[int, ...], history_len: int) -> tuple[int, ...]:
    """Return the shape of one observation of ``Preprocessor(state_size, history_len)``."""
    *others, last = (*state_size, 1) if len(state_size) == _GREY else state_size
    return (*others, last * history_len)


def _as_numbers(states: Sequence[Any] | Array) -> Array:
    """Return bytes as they are and all other numbers as float32."""
    if type(states) is np.ndarray and states.dtype == np.float32:
        return _finite(states)
    try:
        array: Array = np.asarray(states)
    except ValueError as error:
        raise InvalidState(f"a state is not an array of numbers: {error}") from error
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in NUMBERS:
        raise InvalidState(f"a state is not an array of numbers, but of {array.dtype}")
    with np.errstate(over="ignore"):
        array = array.astype(np.float32, copy=False)
    return _finite(array)


def _finite(array: Array) -> Array:
    if not np.logical_and.reduce(np.isfinite(array), axis=None):  # faster than .all() if small
        raise InvalidState("a state has a value that is not finite in float32")
    return array

"""Checks states and stacks the latest ones into observations. Without TensorFlow."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import InvalidState, PreprocessorBase

from .config import Config

Array = npt.NDArray[Any]

#: numpy's kinds of numbers: bool, signed and unsigned integer, float.
NUMBERS = "biuf"


class Preprocessor(PreprocessorBase):
    """The last ``history_len`` states of each environment, side by side along the last axis.

    At the start of an episode the first state fills the whole history, so that nothing of the
    episode before is seen; every later state pushes the oldest one out.
    """

    def __init__(self, config: Config, environments: int) -> None:
        super().__init__(config, environments)
        settings = config.settings
        self._state_size = settings.state_size
        self._is_grey_image = len(settings.state_size) == 2
        self._length = settings.history_len
        self._shape = (environments, *settings.observation_shape)
        self._histories: Array | None = None

    def observe(
        self, environments: npt.NDArray[np.integer[Any]], starts: Array, states: Sequence[Any]
    ) -> Array:
        """Return the observations [A, ...] after new states of A environments."""
        newest = self._checked(states)
        if self._histories is None:
            self._histories = np.zeros(self._shape, newest.dtype)
        if newest.dtype != self._histories.dtype:
            raise InvalidState(
                f"a state of {newest.dtype} came after states of {self._histories.dtype}"
            )
        if self._length == 1:
            return newest
        stacked = self._stack(self._histories[environments], starts, newest)
        self._histories[environments] = stacked
        return stacked

    def _stack(self, histories: Array, starts: Array, newest: Array) -> Array:
        """Push ``newest`` [A, ...] into ``histories`` [A, ...], which are changed in place."""
        width = newest.shape[-1]
        # One move of the flat array instead of many short ones: what it brings into the last
        # places of each row is overwritten.
        flat = histories.reshape(-1)
        flat[:-width] = flat[width:]
        histories[..., -width:] = newest
        for row in np.flatnonzero(starts):
            histories[row] = np.concatenate([newest[row]] * self._length, axis=-1)
        return histories

    def _checked(self, states: Sequence[Any]) -> Array:
        """Return ``states`` as uint8 or float32 [A, ...], with an axis to stack along."""
        array = _as_numbers(states)
        if array.shape[1:] != self._state_size:
            raise InvalidState(
                f"a state has shape {list(array.shape[1:])}, "
                f"the configuration says state_size: {list(self._state_size)}"
            )
        return array[..., np.newaxis] if self._is_grey_image else array


def _as_numbers(states: Sequence[Any]) -> Array:
    """Return bytes as they are and all other numbers as float32."""
    if type(states) is np.ndarray and states.dtype == np.float32:
        return _finite(states)
    try:
        array = np.asarray(states)
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

"""Checks states and stacks the latest ones into an observation."""

from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import InvalidState

Array = npt.NDArray[Any]

#: numpy's kinds of numbers: bool, signed and unsigned integer, float.
NUMBERS = "biuf"


class History:
    """The last ``length`` states of one episode, side by side along the last axis.

    At the start of an episode the first state fills the whole history, so that nothing of the
    episode before is seen; every later state pushes the oldest one out.
    """

    def __init__(self, state_size: tuple[int, ...], length: int) -> None:
        self._state_size = state_size
        self._is_grey_image = len(state_size) == 2
        self._length = length
        self._observation: Array = np.empty(0, np.float32)

    def start(self, state: Any) -> Array:
        """Return the first observation of an episode."""
        newest = self._checked(state)
        self._observation = np.concatenate([newest] * self._length, axis=-1)
        return self._observation

    def push(self, state: Any) -> Array:
        """Return the observation after a step; a new array, which may be kept."""
        newest = self._checked(state)
        if newest.dtype != self._observation.dtype:
            raise InvalidState(
                f"a state of {newest.dtype} came in an episode of {self._observation.dtype}"
            )
        kept = self._observation[..., newest.shape[-1] :]
        self._observation = np.concatenate([kept, newest], axis=-1)
        return self._observation

    def _checked(self, state: Any) -> Array:
        """Return ``state`` as uint8 or float32, with an axis to stack along."""
        array = _as_numbers(state)
        if array.shape != self._state_size:
            raise InvalidState(
                f"a state has shape {list(array.shape)}, "
                f"the configuration says state_size: {list(self._state_size)}"
            )
        return array[..., np.newaxis] if self._is_grey_image else array


def _as_numbers(state: Any) -> Array:
    """Return bytes as they are and all other numbers as float32."""
    try:
        array = np.asarray(state)
    except ValueError as error:
        raise InvalidState(f"a state is not an array of numbers: {error}") from error
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in NUMBERS:
        raise InvalidState(f"a state is not an array of numbers, but of {array.dtype}")
    with np.errstate(over="ignore"):
        array = array.astype(np.float32)
    if not np.isfinite(array).all():
        raise InvalidState("a state has a value that is not finite in float32")
    return array

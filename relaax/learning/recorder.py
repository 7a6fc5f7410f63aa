"""What keeps steps until what they led to is known."""

from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from relaax.observations import Observations

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

BatchT_co = TypeVar("BatchT_co", covariant=True)


class Recorder(Protocol[BatchT_co]):
    """Takes what happens in many environments, and hands out batches of it.

    A ``RolloutStore`` hands out rollouts, a ``StepRecorder`` single steps.
    """

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""

    def forget(self, slots: IntArray) -> BatchT_co | None:
        """Forget the environments at ``slots``; return what is worth to be kept of them."""

    def reward(self, slots: IntArray, rewards: Array, terminated: Array | bool) -> None:
        """Complete the newest step of ``slots``: what its action earned, and whether it ended."""

    def cut_last(self, slots: IntArray) -> None:
        """Take back the last action of ``slots``: the episode was cut off in that state."""

    def observe(
        self, slots: IntArray, observations: Observations, starts: Array | bool
    ) -> BatchT_co | None:
        """Begin a step in each of ``slots``; return what this completes, if anything."""

    def cut_off(self, slots: IntArray, finals: Observations) -> BatchT_co | None:
        """Note the states in which the episodes of ``slots`` were cut off; else as ``observe``."""

    def record(
        self,
        slots: IntArray,
        actions: Array,
        log_probabilities: FloatArray,
        recurrent_state: FloatArray,
        version: int,
    ) -> None:
        """Note what was chosen in the steps just begun, and the recurrent state before it."""

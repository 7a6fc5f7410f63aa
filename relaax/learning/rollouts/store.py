"""Rollouts of many environments, as arrays. Without TensorFlow."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.arrays import zero_padded

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RolloutBatch:
    """K rollouts of T rows each, time-major, and the row that follows them.

    A row is a step: an observation, the action taken there and what it earned. A row that is not
    valid is the state in which an episode was cut off: it only tells what the future was worth.
    """

    #: uint8 or float32 [T + 1, K, ...]; the last row is the state after the rollout.
    observations: Array
    #: float32 [T + 1, K]: 1 where an episode starts.
    starts: FloatArray
    #: int32 [T, K]
    actions: npt.NDArray[np.int32]
    #: float32 [T, K]: of those actions, when they were chosen.
    log_probabilities: FloatArray
    #: float32 [T, K]
    rewards: FloatArray
    #: float32 [T, K]: 1 where the step ended its episode.
    terminated: FloatArray
    #: float32 [T, K]: 1 for a step, 0 for a state where an episode was cut off.
    valid: FloatArray
    #: float32 [2, K, H], before the first row.
    recurrent_state: FloatArray
    #: int64 [K]: version of the parameters that chose the first action.
    versions: IntArray

    @property
    def count(self) -> int:
        """K, the number of rollouts."""
        return self.observations.shape[1]

    @property
    def steps(self) -> int:
        """Environment steps in all rollouts."""
        return int(self.valid.sum())

    def arrays(self) -> Iterator[Array]:
        """Yield what the model computes gradients from, K along axis 1 of each."""
        for field in fields(self):
            if field.name != "versions":
                yield getattr(self, field.name)

    def pieces(self, most: int) -> list["RolloutBatch"]:
        """Return batches of at most ``most`` rollouts, views of this one."""
        if self.count <= most:
            return [self]
        names = [field.name for field in fields(self) if field.name != "versions"]
        return [
            RolloutBatch(
                **{name: getattr(self, name)[:, begin : begin + most] for name in names},
                versions=self.versions[begin : begin + most],
            )
            for begin in range(0, self.count, most)
        ]

    @classmethod
    def zeros(
        cls,
        count: int,
        length: int,
        observation_shape: tuple[int, ...],
        dtype: npt.DTypeLike,
        lstm_size: int,
    ) -> "RolloutBatch":
        """Return ``count`` rollouts of ``length`` rows without a step in them."""
        rows = (length, count)
        return cls(
            observations=np.zeros((length + 1, count, *observation_shape), dtype),
            starts=np.zeros((length + 1, count), np.float32),
            actions=np.zeros(rows, np.int32),
            log_probabilities=np.zeros(rows, np.float32),
            rewards=np.zeros(rows, np.float32),
            terminated=np.zeros(rows, np.float32),
            valid=np.zeros(rows, np.float32),
            recurrent_state=np.zeros((2, count, lstm_size), np.float32),
            versions=np.zeros(count, np.int64),
        )

    @classmethod
    def concatenated(cls, batches: list["RolloutBatch"]) -> "RolloutBatch":
        """Return one batch with the rollouts of all."""
        if len(batches) == 1:
            return batches[0]
        names = [field.name for field in fields(cls) if field.name != "versions"]
        columns = {
            name: np.concatenate([getattr(batch, name) for batch in batches], axis=1)
            for name in names
        }
        return cls(**columns, versions=np.concatenate([batch.versions for batch in batches]))


class RolloutStore:
    """Writes the rows of many environments, and hands out rollouts when they are full.

    Every environment has a slot and a position of its own; none waits for another.
    """

    def __init__(self, length: int, lstm_size: int) -> None:
        self._length = length
        self._capacity = 0
        self._observations: Array | None = None
        rows = length + 1
        self._starts = np.zeros((rows, 0), np.float32)
        self._actions = np.zeros((rows, 0), np.int32)
        self._log_probabilities = np.zeros((rows, 0), np.float32)
        self._rewards = np.zeros((rows, 0), np.float32)
        self._terminated = np.zeros((rows, 0), np.float32)
        self._valid = np.zeros((rows, 0), np.float32)
        self._versions = np.zeros((0,), np.int64)
        self._positions = np.zeros((0,), np.int64)
        self._recurrent_state = np.zeros((2, 0, lstm_size), np.float32)

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; all of it, or none and a MemoryError."""
        observations = self._observations
        if observations is not None:  # the large one, and so the one that may not fit
            observations = zero_padded(observations, capacity, axis=1)
        for name in ("starts", "actions", "log_probabilities", "rewards", "terminated", "valid"):
            setattr(self, f"_{name}", zero_padded(getattr(self, f"_{name}"), capacity, axis=1))
        self._recurrent_state = zero_padded(self._recurrent_state, capacity, axis=1)
        self._versions = zero_padded(self._versions, capacity, axis=0)
        self._positions = zero_padded(self._positions, capacity, axis=0)
        self._observations = observations
        self._capacity = capacity

    def forget(self, slots: IntArray) -> None:
        """Drop the unfinished rollouts of ``slots``."""
        self._positions[slots] = 0

    def reward(self, slots: IntArray, rewards: FloatArray, terminated: Array | bool) -> None:
        """Complete the last row of ``slots``: what its action earned, and whether it ended."""
        last = self._positions[slots] - 1
        self._rewards[last, slots] = rewards
        self._terminated[last, slots] = terminated

    def cut_last(self, slots: IntArray) -> None:
        """Take back the last action of ``slots``: the episode was cut off in that state."""
        self._valid[self._positions[slots] - 1, slots] = 0

    def observe(
        self, slots: IntArray, observations: Array, starts: Array | bool
    ) -> RolloutBatch | None:
        """Begin a row in each of ``slots``; return the rollouts that this completes, if any."""
        return self._begin_rows(slots, observations, starts, carried=1)

    def cut_off(self, slots: IntArray, finals: Array) -> RolloutBatch | None:
        """Note the states in which the episodes of ``slots`` were cut off; else as ``observe``."""
        return self._begin_rows(slots, finals, starts=False, carried=0)

    def _begin_rows(
        self, slots: IntArray, observations: Array, starts: Array | bool, carried: int
    ) -> RolloutBatch | None:
        """Begin rows; those after a full rollout are the first ``carried`` of the next one."""
        if self._observations is None or self._observations.dtype != observations.dtype:
            shape = (self._length + 1, self._capacity, *observations.shape[1:])
            self._observations = np.zeros(shape, observations.dtype)
        positions = self._positions[slots]
        self._observations[positions, slots] = observations
        self._starts[positions, slots] = starts
        self._valid[positions, slots] = 0
        self._positions[slots] = positions + 1
        full = slots[positions == self._length]
        return self._take(self._observations, full, carried) if len(full) else None

    def act(
        self,
        slots: IntArray,
        actions: Array,
        log_probabilities: FloatArray,
        recurrent_state: FloatArray,
        version: int,
    ) -> None:
        """Note what was chosen in the rows just begun, and the recurrent state before it."""
        last = self._positions[slots] - 1
        self._actions[last, slots] = actions
        self._log_probabilities[last, slots] = log_probabilities
        self._valid[last, slots] = 1
        self._rewards[last, slots] = 0
        self._terminated[last, slots] = 0
        first = last == 0
        if first.any():
            self._versions[slots[first]] = version
            self._recurrent_state[:, slots[first]] = recurrent_state[:, first]

    def _take(self, observations: Array, slots: IntArray, carried: int) -> RolloutBatch:
        """Return the full rollouts of ``slots``.

        The row that follows becomes their first, unless ``carried`` is 0: no step begins there.
        """
        length = self._length
        taken = RolloutBatch(
            observations=observations[:, slots],
            starts=self._starts[:, slots],
            actions=self._actions[:length, slots],
            log_probabilities=self._log_probabilities[:length, slots],
            rewards=self._rewards[:length, slots],
            terminated=self._terminated[:length, slots],
            valid=self._valid[:length, slots],
            recurrent_state=self._recurrent_state[:, slots],
            versions=self._versions[slots],
        )
        observations[0, slots] = taken.observations[length]
        self._starts[0, slots] = taken.starts[length]
        self._valid[0, slots] = 0
        self._positions[slots] = carried
        return taken


class NoRollouts(RolloutStore):
    """Keeps nothing: where nobody learns."""

    def grow(self, capacity: int) -> None:
        """Do nothing."""

    def forget(self, slots: IntArray) -> None:
        """Do nothing."""

    def reward(self, slots: IntArray, rewards: FloatArray, terminated: Array | bool) -> None:
        """Do nothing."""

    def cut_last(self, slots: IntArray) -> None:
        """Do nothing."""

    def observe(
        self, slots: IntArray, observations: Array, starts: Array | bool
    ) -> RolloutBatch | None:
        """Complete nothing."""
        return None

    def cut_off(self, slots: IntArray, finals: Array) -> RolloutBatch | None:
        """Complete nothing."""
        return None

    def act(
        self,
        slots: IntArray,
        actions: Array,
        log_probabilities: FloatArray,
        recurrent_state: FloatArray,
        version: int,
    ) -> None:
        """Do nothing."""

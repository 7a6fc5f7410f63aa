"""Writes the rows of rollouts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.arrays import zero_padded
from relaax.learning.rollouts.batch import RolloutBatch
from relaax.learning.rollouts.columns import Columns
from relaax.observations import Observations, arrays_in, mapped

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

#: The columns [T + 1, capacity, ...] beside the observations.
_OF_ROWS = (
    "starts", "actions", "rewards", "terminated", "valid", "on_policy"
)  # fmt: skip


class RolloutStore:
    """Writes the rows of many environments, and hands out rollouts when they are full.

    Every environment has a slot and a position of its own; none waits for another.
    """

    def __init__(self, length: int, columns: Columns) -> None:
        self._length = length
        self._capacity = 0
        self._observations: Observations | None = None
        rows = length + 1
        self._starts = np.zeros((rows, 0), np.float32)
        self._actions = columns.actions(rows, 0)
        self._extras = columns.extras_of(rows, 0)
        self._rewards = np.zeros((rows, 0), np.float32)
        self._terminated = np.zeros((rows, 0), np.float32)
        self._valid = np.zeros((rows, 0), np.float32)
        self._on_policy = np.zeros((rows, 0), np.float32)
        self._recurrent_state = columns.recurrent_state(0)
        self._versions = np.zeros(0, np.int64)
        self._positions = np.zeros(0, np.int64)

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""
        observations = self._observations
        if observations is not None:  # the large one, and so the one that may not fit
            observations = mapped(lambda part: zero_padded(part, capacity, axis=1), observations)
        for name in _OF_ROWS:
            setattr(self, f"_{name}", zero_padded(getattr(self, f"_{name}"), capacity, axis=1))
        self._extras = mapped(lambda part: zero_padded(part, capacity, axis=1), self._extras)
        self._recurrent_state = zero_padded(self._recurrent_state, capacity, axis=1)
        self._versions = zero_padded(self._versions, capacity, axis=0)
        self._positions = zero_padded(self._positions, capacity, axis=0)
        self._observations = observations
        self._capacity = capacity

    def fitting(self, observations: Observations) -> Observations:
        """Return ``observations``: rows may be of any type, one at a time."""
        return observations

    def forget(self, slots: IntArray) -> None:
        """Drop the unfinished rollouts of ``slots``: they are not worth to be kept."""
        self._positions[slots] = 0

    def reward(self, slots: IntArray, rewards: Array, terminated: Array | bool) -> None:
        """Complete the last row of ``slots``: what its action earned, and whether it ended."""
        last = self._positions[slots] - 1
        self._rewards[last, slots] = rewards
        self._terminated[last, slots] = terminated

    def chosen(self, slots: IntArray) -> Array:
        """Return the actions [X, ...] that were chosen in the last rows of ``slots``."""
        return self._actions[self._positions[slots] - 1, slots]

    def executed(self, slots: IntArray, actions: Array) -> None:
        """Note that the last rows of ``slots`` are not the policy's: these ``actions`` are others.

        The policy's own are kept, of which the likelihoods are.
        """
        self._on_policy[self._positions[slots] - 1, slots] = 0

    def cut_last(self, slots: IntArray) -> None:
        """Take back the last action of ``slots``: the episode was cut off in that state."""
        last = self._positions[slots] - 1
        self._valid[last, slots] = self._on_policy[last, slots] = 0

    def observe(
        self, slots: IntArray, observations: Observations, starts: Array | bool
    ) -> RolloutBatch | None:
        """Begin a row in each of ``slots``; return the rollouts that this completes, if any."""
        return self._begin_rows(slots, observations, starts, carried=1)

    def cut_off(self, slots: IntArray, finals: Observations) -> RolloutBatch | None:
        """Note the states in which the episodes of ``slots`` were cut off; else as ``observe``."""
        return self._begin_rows(slots, finals, starts=False, carried=0)

    def _begin_rows(
        self, slots: IntArray, observations: Observations, starts: Array | bool, carried: int
    ) -> RolloutBatch | None:
        """Begin rows; those after a full rollout are the first ``carried`` of the next one."""
        positions = self._positions[slots]
        rows = self._rows_of(observations)
        if isinstance(rows, dict):
            for name, part in rows.items():
                part[positions, slots] = observations[name]
        else:
            rows[positions, slots] = observations
        self._starts[positions, slots] = starts
        self._valid[positions, slots] = self._on_policy[positions, slots] = 0
        self._positions[slots] = positions + 1
        full = slots[positions == self._length]
        return self._take(rows, full, carried) if len(full) else None

    def _rows_of(self, observations: Observations) -> Any:
        """Return the rows [T + 1, capacity, ...] that ``observations`` go to, of their types."""
        rows: Any = self._observations
        if isinstance(observations, dict):
            before = rows or {}
            rows = {
                name: before[name] if _has_type_of(part, before.get(name)) else self._room(part)
                for name, part in observations.items()
            }
        elif rows is None or rows.dtype != observations.dtype:
            rows = self._room(observations)
        self._observations = rows
        return rows

    def _room(self, observations: Array) -> Array:
        shape = (self._length + 1, self._capacity, *observations.shape[1:])
        return np.zeros(shape, observations.dtype)

    def record(
        self,
        slots: IntArray,
        actions: Array,
        extras: Mapping[str, Array],
        recurrent_state: FloatArray,
        version: int,
    ) -> None:
        """Note what was chosen in the rows just begun, and the recurrent state before it."""
        last = self._positions[slots] - 1
        self._actions[last, slots] = actions
        for name, part in self._extras.items():
            part[last, slots] = extras[name]
        self._valid[last, slots] = self._on_policy[last, slots] = 1
        self._rewards[last, slots] = 0
        self._terminated[last, slots] = 0
        first = last == 0
        if first.any():
            self._versions[slots[first]] = version
            self._recurrent_state[:, slots[first]] = recurrent_state[:, first]

    def _take(self, observations: Observations, slots: IntArray, carried: int) -> RolloutBatch:
        """Return the full rollouts of ``slots``.

        The row that follows becomes their first, unless ``carried`` is 0: no step begins there.
        """
        length = self._length
        taken = RolloutBatch(
            observations=mapped(lambda part: part[:, slots], observations),
            starts=self._starts[:, slots],
            actions=self._actions[:length, slots],
            extras=mapped(lambda part: part[:length, slots], self._extras),
            rewards=self._rewards[:length, slots],
            terminated=self._terminated[:length, slots],
            valid=self._valid[:length, slots],
            on_policy=self._on_policy[:length, slots],
            recurrent_state=self._recurrent_state[:, slots],
            versions=self._versions[slots],
        )
        for part, of_slots in zip(
            arrays_in(observations), arrays_in(taken.observations), strict=True
        ):
            part[0, slots] = of_slots[length]
        self._starts[0, slots] = taken.starts[length]
        self._valid[0, slots] = self._on_policy[0, slots] = 0
        self._positions[slots] = carried
        return taken


def _has_type_of(observations: Array, rows: Array | None) -> bool:
    return rows is not None and rows.dtype == observations.dtype

"""Some rollouts, ready to be learnt from."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.rollouts.columns import Columns
from relaax.observations import Observations, mapped

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


#: The name of rollouts among batches, and of the table that they are drawn from.
ROLLOUTS = "rollouts"


@dataclass(frozen=True)
class RolloutBatch:
    """K rollouts of T rows each, time-major, and the row that follows them.

    A row is a step: an observation, the action taken there and what it earned. A row that is not
    valid is the state in which an episode was cut off: it only says what the future was worth.
    """

    #: [T + 1, K, ...], by name if they have names; the last row follows the rollout.
    observations: Observations
    #: float32 [T + 1, K]: 1 where an episode starts.
    starts: FloatArray
    #: [T, K, ...]
    actions: Array
    #: [T, K, ...] by name: what was recorded of those choices, such as their log-probability.
    extras: Mapping[str, Array]
    #: float32 [T, K]
    rewards: FloatArray
    #: float32 [T, K]: 1 where the step ended its episode.
    terminated: FloatArray
    #: float32 [T, K]: 1 for a step, 0 for a state where an episode was cut off.
    valid: FloatArray
    #: float32 [T, K]: 1 for a step in which the policy's own action was executed; 0 where another
    #: one was, and where a row is not valid. The policy learns from these steps, values from all.
    on_policy: FloatArray
    #: float32 [2, K, H], before the first row.
    recurrent_state: FloatArray
    #: int64 [K]: version of the parameters that chose the first action.
    versions: IntArray

    @property
    def count(self) -> int:
        """K, the number of rollouts."""
        return len(self.versions)

    @property
    def steps(self) -> int:
        """Environment steps in all rollouts."""
        return int(self.valid.sum())

    @property
    def kind(self) -> Any:
        """The numbers of the observations: bytes or floats, by name if they have names.

        Only batches of one kind are concatenated.
        """
        return mapped(lambda array: array.dtype, self.observations)

    def columns(self) -> Iterator[Any]:
        """Yield what the model computes gradients from, K along axis 1 of each.

        Observations may be arrays by name, and extras are.
        """
        for field in fields(self):
            if field.name != "versions":
                yield getattr(self, field.name)

    def pieces(self, most: int) -> list["RolloutBatch"]:
        """Return batches of at most ``most`` rollouts, views of this one."""
        if self.count <= most:
            return [self]
        return [self.chosen(slice(begin, begin + most)) for begin in range(0, self.count, most)]

    def chosen(self, which: slice | IntArray) -> "RolloutBatch":
        """Return some rollouts, in the order of ``which``; a slice gives views of this batch."""
        names = [field.name for field in fields(self) if field.name != "versions"]
        return RolloutBatch(
            **{name: mapped(_some_rollouts(which), getattr(self, name)) for name in names},
            versions=self.versions[which],
        )

    @classmethod
    def zeros(cls, count: int, length: int, columns: Columns) -> "RolloutBatch":
        """Return ``count`` rollouts of ``length`` rows without a step in them."""

        def rows(length: int) -> FloatArray:
            return np.zeros((length, count), np.float32)

        return cls(
            observations=columns.observations(length + 1, count),
            starts=rows(length + 1),
            actions=columns.actions(length, count),
            extras=columns.extras_of(length, count),
            rewards=rows(length),
            terminated=rows(length),
            valid=rows(length),
            on_policy=rows(length),
            recurrent_state=columns.recurrent_state(count),
            versions=np.zeros(count, np.int64),
        )

    @classmethod
    def concatenated(cls, batches: list["RolloutBatch"]) -> "RolloutBatch":
        """Return one batch with the rollouts of all."""
        if len(batches) == 1:
            return batches[0]
        names = [field.name for field in fields(cls) if field.name != "versions"]
        columns = {
            name: mapped(_side_by_side, *(getattr(batch, name) for batch in batches))
            for name in names
        }
        return cls(**columns, versions=np.concatenate([batch.versions for batch in batches]))


def _some_rollouts(which: slice | IntArray) -> Callable[[Array], Array]:
    return lambda array: array[:, which]


def _side_by_side(*arrays: Array) -> Array:
    return np.concatenate(arrays, axis=1)

"""Steps of several environments on their way to a storage."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.storage import Flags, steps_in

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class StepBatch:
    """N steps of several environments, the steps of each in their order."""

    #: int64 [N]: the environment of each step.
    slots: IntArray
    #: uint8 [N]: START, TERMINATED, FINAL, ABANDONED and GAP of ``relaax.replay.storage``.
    flags: Flags
    #: [N, ...] by name: all that the storage's schema has, and maybe more, which is not stored.
    columns: Mapping[str, Array]

    def __len__(self) -> int:
        """Return N."""
        return len(self.flags)

    @property
    def actions(self) -> int:
        """In how many environment steps an action was taken; see ``steps_in``."""
        return steps_in(self.flags, self.columns)

    def chosen(self, which: IntArray | BoolArray) -> "StepBatch":
        """Return some steps, in the order of ``which``."""
        return self._mapped(lambda part: part[which])

    @classmethod
    def concatenated(cls, batches: Sequence["StepBatch"]) -> "StepBatch":
        """Return one batch with the steps of all, in this order."""
        first, *others = batches
        if not others:
            return first
        return first._mapped(lambda *parts: np.concatenate(parts), *others)

    def _mapped(self, function: Callable[..., Array], *others: "StepBatch") -> "StepBatch":
        columns = {
            name: function(part, *(other.columns[name] for other in others))
            for name, part in self.columns.items()
        }
        return StepBatch(
            function(self.slots, *(other.slots for other in others)),
            function(self.flags, *(other.flags for other in others)),
            columns,
        )

"""The steps of a batch with their advantages, and minibatches of them."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.arrays import zero_padded
from relaax.observations import Observations, mapped

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Experience:
    """K sequences of T rows each, time-major: [T, K, ...], as numpy arrays or tensors.

    Without a recurrent layer each step is a sequence of its own, and T is 1.
    """

    #: By name if they have names.
    observations: Observations
    #: 1 where an episode starts.
    starts: Any
    #: [2, K, H], before the first row.
    recurrent_state: Any
    actions: Any
    #: By name: what was recorded when those actions were chosen.
    extras: Any
    #: 1 for a step that is learnt from.
    valid: Any
    #: 1 for a step whose action was executed, and no other one in its place: the policy's loss and
    #: its entropy are of these alone.
    on_policy: Any
    #: By name: the numbers that a method has computed of the rollouts, such as advantages.
    targets: Any
    #: By head: its outputs before the first pass, [T, K, N].
    before: Any

    @property
    def count(self) -> int:
        """K, the number of sequences."""
        return int(self.valid.shape[1])

    def columns(self) -> Iterator[Any]:
        """Yield all columns, in the order in which they are given above."""
        for field in fields(self):
            yield getattr(self, field.name)

    def as_steps(self) -> "Experience":
        """Return the valid steps alone, each as a sequence of its own."""
        which = np.flatnonzero(self.valid)
        count = self.valid.size

        def flat(part: Array) -> Array:
            return part.reshape(1, count, *part.shape[2:])[:, which]

        columns = {field.name: mapped(flat, getattr(self, field.name)) for field in _STEPS}
        return Experience(**columns, recurrent_state=np.zeros((2, len(which), 0), np.float32))

    def minibatches(self, size: int, random: np.random.Generator) -> Iterator["Experience"]:
        """Yield all sequences at random, in equal parts of at most ``size``.

        Each is filled up to that with sequences of zeros, of which not a row is valid.
        """
        parts = -(-self.count // size)
        for which in np.array_split(random.permutation(self.count), parts):
            yield self.chosen(which, size)

    def pieces(self, size: int) -> Iterator["Experience"]:
        """Yield all sequences in order, ``size`` at once; the last ones are filled up, too."""
        for begin in range(0, self.count, size):
            yield self.chosen(np.arange(begin, min(begin + size, self.count)), size)

    def chosen(self, which: IntArray, size: int) -> "Experience":
        """Return some sequences, and zeros behind them up to ``size``."""
        return Experience(*(_chosen(column, which, size) for column in self.columns()))


#: All columns but the recurrent state.
_STEPS = [field for field in fields(Experience) if field.name != "recurrent_state"]


def _chosen(column: Any, which: IntArray, size: int) -> Any:
    return mapped(lambda part: zero_padded(part[:, which], size, axis=1), column)

"""What a shard holds, where the parameter server runs in several processes."""

from typing import Protocol

from relaax.algorithm_base.checkpoint import Checkpoint
from relaax.algorithm_base.roles import FloatVector


class Slice(Protocol):
    """A slice [end - begin] of the parameters, and what its optimiser remembers of it.

    All methods may be called by many threads at once.
    """

    #: Its place in the whole vector [size].
    begin: int
    end: int
    size: int

    def require_fitting(self, gradient: FloatVector) -> None:
        """Raise ValueError unless ``gradient`` is one of this slice."""

    def apply(self, gradient: FloatVector, steps: int) -> tuple[int, int] | None:
        """Apply a gradient, and count the steps behind it.

        Return the number of updates with this one, and the global step before it; None where the
        training is over, and nothing was applied.
        """

    def follow(self, gradient: FloatVector, global_t: int, steps: int) -> int:
        """Apply a gradient as ``apply`` has at global step ``global_t``; return the number."""

    def read(self) -> tuple[FloatVector, int, int]:
        """Return the values, read-only, the number of updates and the global step, which agree."""

    def begin_with(self, vector: FloatVector, number: int, global_t: int) -> None:
        """Take ``vector`` for the values, and let the optimiser begin anew."""

    def checkpoint(self) -> Checkpoint:
        """Return what is saved of it."""

    def restore(self, checkpoint: Checkpoint, location: str) -> None:
        """Go on from what was saved in ``location``; CheckpointMismatch for another shard's."""

"""A shard's slice of the parameters, in a store."""

from collections.abc import Callable

from relaax.algorithm_base import Checkpoint, FloatVector
from relaax.learning.parameter_store import ParameterStore


class StoredSlice:
    """A ``Slice`` whose numbers are those of a store.

    ``save`` and ``restore`` turn the store into a checkpoint, and back. Updates must not be applied
    by anything else.
    """

    def __init__(
        self,
        store: ParameterStore,
        begin: int,
        end: int,
        size: int,
        save: Callable[[], Checkpoint],
        restore: Callable[[Checkpoint, str], None],
    ) -> None:
        self.begin, self.end, self.size = begin, end, size
        self._store = store
        self._save = save
        self._restore = restore

    def require_fitting(self, gradient: FloatVector) -> None:
        """See ``Slice``."""
        self._store.require_fitting(gradient)

    def apply(self, gradient: FloatVector, steps: int) -> tuple[int, int] | None:
        """See ``Slice``."""
        before = self._store.version
        number, global_t = self._store.apply(gradient, steps)
        return None if number == before else (number, global_t - steps)

    def follow(self, gradient: FloatVector, global_t: int, steps: int) -> int:
        """See ``Slice``."""
        return self._store.follow(gradient, global_t, steps)

    def read(self) -> tuple[FloatVector, int, int]:
        """See ``Slice``."""
        return self._store.read()

    def begin_with(self, vector: FloatVector, number: int, global_t: int) -> None:
        """See ``Slice``."""
        self._store.reset(vector, number, global_t)

    def checkpoint(self) -> Checkpoint:
        """See ``Slice``."""
        return self._save()

    def restore(self, checkpoint: Checkpoint, location: str) -> None:
        """See ``Slice``."""
        self._restore(checkpoint, location)

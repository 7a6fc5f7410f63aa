"""The parameters of a training, shared by the threads that answer workers."""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import (
    DEFAULT,
    FloatVector,
    Gradient,
    Statistics,
    Update,
    Values,
    Version,
)
from relaax.algorithm_base.bridge_base import gradient_of, require_default
from relaax.parameters.combining import Combiner
from relaax.parameters.optimizers.optimizer import Optimizer, Slots
from relaax.parameters.schedule import Remembered


@dataclass(frozen=True)
class Snapshot:
    """A consistent copy of the state at one version."""

    #: float32 [size], read-only.
    parameters: FloatVector
    #: All else that a checkpoint has, by name, read-only: slots of the optimiser, other policies.
    slots: Slots
    global_t: int
    version: int


class Store(ABC):
    """The parameters of policies by name, and the global step.

    Every method may be called by many threads at once. An update is applied whole or not at all,
    and a reader never sees half of one.
    """

    #: How often values were published since the start.
    publications = 0

    def __init__(self) -> None:
        self._global_t = 0
        self._is_frozen = False
        self._last_step = math.inf
        self._lock = threading.Lock()

    @property
    def global_t(self) -> int:
        """Environment steps of all agents together."""
        return self._global_t

    @property
    def is_over(self) -> bool:
        """Whether the training is over: steps are counted no more, and gradients not applied."""
        return self._is_frozen or self._global_t >= self._last_step

    def add(self, steps: int) -> int:
        """Add environment steps to the global step and return it."""
        with self._lock:
            if not self.is_over:
                self._global_t += steps
            return self._global_t

    def end_at(self, last_step: float) -> None:
        """Let the training be over at global step ``last_step``.

        The number of updates after the last one would depend on the speed of the processes.
        """
        self._last_step = last_step

    def freeze(self) -> None:
        """Change nothing from now on: updates and steps are accepted and ignored."""
        with self._lock:
            self._is_frozen = True

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the values of a policy, read-only; see ``ValueSource``."""
        values = self._newest(policy)
        is_current = known is not None and known.number == values.version.number
        return replace(values, vector=None) if is_current else values

    def iteration_of(self, version: int) -> int | None:
        """Return the learner's count of its steps when it published a version, if that is known."""
        return None

    def database_version(self, version: int) -> int | None:
        """Return the number of a version in a parameter database, if that is known.

        It is the learner's count; that of the updates where gradients move the values.
        """
        return version if self.iteration < 0 else self.iteration_of(version)

    @property
    def iteration(self) -> int:
        """The learner's count of its steps when it published last; -1 before."""
        return -1

    @property
    @abstractmethod
    def version(self) -> int:
        """Number of changes of the default policy."""

    @abstractmethod
    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Change the values of a policy and return the newer ones; see ``Parameters``."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Return the content of a checkpoint."""

    @abstractmethod
    def restore(self, snapshot: Snapshot) -> None:
        """Go on from ``snapshot``."""

    @abstractmethod
    def _newest(self, policy: str) -> Values: ...


class Merging(Protocol):
    """Merges the statistics of filters."""

    @property
    def length(self) -> int:
        """Their number of entries."""

    def merge(self, statistics: FloatVector, added: FloatVector) -> None:
        """Merge ``added`` [length] into ``statistics`` [length], in place."""


class ParameterStore(Store):
    """One policy, whose vector an optimizer moves by gradients.

    The statistics of ``filters`` are the vector's end, which gradients do not reach. Each gradient
    is an update, unless the ``combiner`` says otherwise.
    """

    def __init__(
        self,
        parameters: FloatVector,
        optimizer: Optimizer,
        learning_rate: Callable[[int], float],
        filters: Merging | None = None,
        combiner: Combiner | None = None,
    ) -> None:
        super().__init__()
        self._parameters = parameters.astype(np.float32)
        self._filters = filters
        #: Gradients move this part of the vector, its beginning.
        self._moved = self._parameters.size - (0 if filters is None else filters.length)
        self._optimizer = optimizer
        self._combiner = combiner
        self._learning_rate = learning_rate
        #: The same, where checkpoints remember how it changes.
        self._remembered = learning_rate if isinstance(learning_rate, Remembered) else None
        #: Whether the global step is the sum of the steps that come here, and of no others.
        self._counts = True
        #: The global step at the last look at the first shard, where steps are counted elsewhere.
        self._looked_at = 0
        self._version = 0
        self._read: FloatVector | None = None

    @property
    def version(self) -> int:
        """Number of applied updates."""
        return self._version

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self._parameters.size

    def keep(self, begin: int, end: int) -> "StoredSlice":
        """Hold no more than the entries [begin, end), before any update, and return these.

        ValueError where they cannot be moved alone.
        """
        size, moved = self._parameters.size, self._moved
        if begin > moved or moved < end < size:
            raise ValueError("the statistics of filters cannot be divided")
        self._optimizer = self._optimizer.part(begin, min(end, moved), moved)
        self._parameters = self._parameters[begin:end].copy()
        self._moved = min(end, moved) - begin
        self._read = None
        self._counts = begin == 0
        return StoredSlice(self, begin, end, size)

    def begin_with(self, parameters: FloatVector) -> None:
        """Take other initial parameters [size]."""
        with self._lock:
            self._parameters[:] = parameters
            self._read = None

    def follow(self, counted: int) -> None:
        """Take the step that the first shard has ``counted``, where it has gone back."""
        with self._lock:
            if counted < self._looked_at:
                self._global_t = counted
            self._looked_at = self._global_t

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Apply one gradient and count its steps, or merge statistics; see ``Parameters``."""
        require_default(policy)
        if isinstance(update, Statistics):
            self.merge(update)
            return self.pull()
        gradient = gradient_of(update)
        self.apply(
            gradient.vector, gradient.steps, None, gradient.statistics, gradient.computed_with
        )
        # Values come back also where a gradient waits for others: none would say the end.
        return self.pull(gradient.computed_with if self.is_over else None)

    def apply(
        self,
        gradient: FloatVector,
        steps: int,
        at: int | None = None,
        statistics: Sequence[Statistics] = (),
        computed_with: Version | None = None,
    ) -> None:
        """Apply a gradient of the values ``computed_with``, count its steps, merge statistics.

        The learning rate is that of global step ``at``, by default of the present one. A slice
        that does not count takes the latest ``at`` for the present one, since all steps are counted
        elsewhere. Where gradients are combined, this may be no update yet.
        ValueError for another size, and for numbers that are not finite: one NaN would spoil the
        parameters of all workers.
        """
        self.require_fitting(gradient, statistics)
        with self._lock:
            if at is not None and not self._counts:
                self._global_t = max(self._global_t, at)
            if self.is_over:
                return
            moved = self._parameters[: self._moved]
            given = Gradient(gradient, computed_with, steps, statistics)
            combiner = self._combiner
            update = given if combiner is None else combiner.add(given, self._version, moved)
            if update is not None:
                rate = self._learning_rate(self._global_t if at is None else at)
                self._optimizer.apply(moved, update.vector, rate)
                self._merge(update.statistics)
                self._note_change()
            self._global_t += steps

    def require_fitting(self, gradient: FloatVector, statistics: Sequence[Statistics] = ()) -> None:
        """Raise ValueError unless a gradient and statistics have their sizes and are finite."""
        _require_like("gradient", gradient, "parameters", self._moved)
        self._require_statistics(statistics)

    def merge(self, statistics: Statistics) -> None:
        """Merge statistics alone; ValueError as for a gradient."""
        self._require_statistics([statistics])
        with self._lock:
            if not self.is_over:
                self._merge([statistics])
                self._note_change()

    def snapshot(self) -> Snapshot:
        """Return the content of a checkpoint."""
        with self._lock:
            return Snapshot(
                parameters=frozen_copy(self._parameters),
                slots={name: frozen_copy(slot) for name, slot in self._optimizer.slots().items()}
                | ({} if self._remembered is None else self._remembered.slots()),
                global_t=self._global_t,
                version=self._version,
            )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from ``snapshot``."""
        with self._lock:
            if self._remembered is not None:
                self._remembered.restore(snapshot.slots, snapshot.global_t)
            self._parameters[:] = snapshot.parameters
            for name, slot in self._optimizer.slots().items():
                slot[:] = snapshot.slots[name]
            self._global_t = snapshot.global_t
            self._version = snapshot.version
            self._read = None

    def _newest(self, policy: str) -> Values:
        require_default(policy)
        with self._lock:
            if self._read is None:
                self._read = frozen_copy(self._parameters)
                if self._combiner is not None:
                    self._combiner.remember(self._version, self._read)
            return Values(Version(self._version), self._global_t, self._read)

    def _require_statistics(self, statistics: Sequence[Statistics]) -> None:
        for each in statistics:
            size = self._parameters.size - self._moved
            _require_like("update", each.vector, "statistics of filters", size)

    def _merge(self, statistics: Sequence[Statistics]) -> None:
        for each in statistics:
            if self._filters is not None and each.vector.size:
                self._filters.merge(self._parameters[self._moved :], each.vector)

    def _note_change(self) -> None:
        self._version += 1
        self._read = None


class StoredSlice:
    """The slice that a store owns; see ``Slice``."""

    def __init__(self, store: ParameterStore, begin: int, end: int, size: int) -> None:
        self.begin, self.end, self.size = begin, end, size
        self._store = store

    def apply(self, gradient: Gradient, at: int) -> None:
        """See ``Slice``."""
        vector, statistics = gradient.vector, gradient.statistics
        self._store.apply(vector, gradient.steps, at, statistics, gradient.computed_with)

    def begin_with(self, vector: FloatVector) -> None:
        """See ``Slice``."""
        self._store.begin_with(vector)

    def follow(self, counted: int) -> None:
        """See ``Slice``."""
        self._store.follow(counted)


def _require_like(kind: str, vector: FloatVector, of: str, size: int) -> None:
    if vector.shape != (size,):
        raise ValueError(
            f"the {kind} has shape {vector.shape}, the {of} ({size},): "
            "do all servers read one configuration?"
        )
    if not np.isfinite(vector).all():
        raise ValueError(f"the {kind} is not finite")


def frozen_copy(vector: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only copy that lies in bytes, ready to be sent as it is."""
    return np.frombuffer(vector.tobytes(), vector.dtype)

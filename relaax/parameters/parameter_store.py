"""The global parameters, shared by the threads that answer workers, and their answers."""

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import (
    DEFAULT,
    FloatVector,
    Gradient,
    Metrics,
    ParameterLink,
    Statistics,
    Update,
    Values,
    Version,
)
from relaax.algorithm_base.bridge_base import gradient_of, require_default
from relaax.parameters.optimizers.optimizer import Optimizer, Slots
from relaax.parameters.schedule import Remembered


@dataclass(frozen=True)
class Snapshot:
    """A consistent copy of the state at one version."""

    #: float32 [size], read-only.
    parameters: FloatVector
    #: What the optimiser remembers, by name, read-only.
    slots: Slots
    global_t: int
    version: int


class Merging(Protocol):
    """What merges the statistics of filters."""

    @property
    def length(self) -> int:
        """How long they are."""

    def merge(self, statistics: FloatVector, added: FloatVector) -> None:
        """Merge ``added`` [length] into ``statistics`` [length], in place."""


class ParameterStore:
    """One flat vector, its optimiser, the global step and the version.

    The statistics of ``filters`` are the vector's end, which gradients do not reach. Every method
    may be called by many threads at once. An update is applied whole or not at all, and a reader
    never sees half of one.
    """

    def __init__(
        self,
        parameters: FloatVector,
        optimizer: Optimizer,
        learning_rate: Callable[[int], float],
        filters: Merging | None = None,
    ) -> None:
        self._parameters = parameters.astype(np.float32)
        self._filters = filters
        #: How much of the vector gradients move.
        self._moved = self._parameters.size - (0 if filters is None else filters.length)
        self._optimizer = optimizer
        self._learning_rate = learning_rate
        #: What a checkpoint remembers of how it changes.
        self._remembered = learning_rate if isinstance(learning_rate, Remembered) else None
        self._global_t = 0
        #: Whether the global step is the sum of what comes here, and of nothing else.
        self._counts = True
        self._version = 0
        self._published: FloatVector | None = None
        self._is_frozen = False
        self._last_step = math.inf
        self._lock = threading.Lock()

    @property
    def global_t(self) -> int:
        """Environment steps of all agents together."""
        return self._global_t

    @property
    def version(self) -> int:
        """Number of applied updates."""
        return self._version

    @property
    def is_over(self) -> bool:
        """Whether nothing changes any more."""
        return self._is_frozen or self._global_t >= self._last_step

    def increment_global_t(self, steps: int) -> int:
        """Add ``steps`` and return the sum."""
        with self._lock:
            if not self.is_over:
                self._global_t += steps
            return self._global_t

    def end_at(self, last_step: float) -> None:
        """Change nothing once the global step has reached ``last_step``.

        What comes after the last update depends on how fast the processes are, and is no part of
        the result.
        """
        self._last_step = last_step

    def freeze(self) -> None:
        """Change nothing from now on: updates and steps are accepted and ignored."""
        with self._lock:
            self._is_frozen = True

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
        self._published = None
        self._counts = begin == 0
        return StoredSlice(self, begin, end, size)

    def begin_with(self, parameters: FloatVector) -> None:
        """Take other initial parameters [size]."""
        with self._lock:
            self._parameters[:] = parameters
            self._published = None

    def apply(
        self,
        gradient: FloatVector,
        steps: int,
        at: int | None = None,
        statistics: Sequence[Statistics] = (),
    ) -> tuple[int, int]:
        """Apply a gradient, count its steps, merge statistics; return version and global step.

        The learning rate is that of global step ``at``, by default of the present one. A slice
        that does not count takes the latest ``at`` for the present one, since all steps are counted
        elsewhere.
        ValueError for another size, and for numbers that are not finite: one NaN would spoil the
        parameters of all workers.
        """
        self.require_fitting(gradient, statistics)
        with self._lock:
            if at is not None and not self._counts:
                self._global_t = max(self._global_t, at)
            if self.is_over:
                return self._version, self._global_t
            rate = self._learning_rate(self._global_t if at is None else at)
            self._optimizer.apply(self._parameters[: self._moved], gradient, rate)
            self._merge(statistics)
            self._global_t += steps
            self._note_change()
            return self._version, self._global_t

    def merge(self, statistics: Statistics) -> None:
        """Merge statistics alone; ValueError as for a gradient."""
        self._require_statistics([statistics])
        with self._lock:
            if not self.is_over:
                self._merge([statistics])
                self._note_change()

    def require_fitting(self, gradient: FloatVector, statistics: Sequence[Statistics] = ()) -> None:
        """Raise ValueError unless a gradient and statistics have their sizes and are finite."""
        _require_like("gradient", gradient, "parameters", self._moved)
        self._require_statistics(statistics)

    def read(self) -> tuple[FloatVector, int, int]:
        """Return parameters (float32 [size], read-only), version and global step, which agree."""
        with self._lock:
            if self._published is None:
                self._published = frozen_copy(self._parameters)
            return self._published, self._version, self._global_t

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
        self._published = None

    def snapshot(self) -> Snapshot:
        """Return what a checkpoint holds."""
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
            self._published = None


class ParameterService(ParameterLink):
    """The parameter server's end, where gradients move the values; many threads call it at once."""

    def __init__(self, store: ParameterStore, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics

    def add(self, steps: int) -> int:
        """Add environment steps to the global step and return it."""
        return self._store.increment_global_t(steps)

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the parameters, without their vector when ``known`` is current."""
        require_default(policy)
        parameters, version, global_t = self._store.read()
        is_current = known is not None and known.number == version
        return Values(Version(version), global_t, None if is_current else parameters)

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Apply one gradient, count its steps and return the newer values; or merge statistics."""
        require_default(policy)
        if isinstance(update, Statistics):
            self._store.merge(update)
            return self.pull()
        gradient = gradient_of(update)
        self._store.apply(gradient.vector, gradient.steps, statistics=gradient.statistics)
        return self.pull(gradient.computed_with)

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._metrics


class StoredSlice:
    """The slice that a store owns; see ``Slice``."""

    def __init__(self, store: ParameterStore, begin: int, end: int, size: int) -> None:
        self.begin, self.end, self.size = begin, end, size
        self._store = store

    def apply(self, gradient: Gradient, at: int) -> None:
        """See ``Slice``."""
        self._store.apply(gradient.vector, gradient.steps, at, gradient.statistics)

    def begin_with(self, vector: FloatVector) -> None:
        """See ``Slice``."""
        self._store.begin_with(vector)


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

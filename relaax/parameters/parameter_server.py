"""Serves a training's parameters to workers and learners, and keeps them in checkpoints."""

import logging
import threading
from collections import deque
from collections.abc import Iterable, Mapping

from relaax.algorithm_base import (
    DEFAULT,
    Checkpoint,
    CheckpointMismatch,
    Evaluations,
    Metrics,
    ParameterLink,
    ParameterServerBase,
    Saver,
    Shard,
    Slice,
    Update,
    Values,
    Version,
)
from relaax.algorithm_base.checkpoint import (
    POLICIES,
    SCHEDULE,
    Fingerprint,
    completed,
    require_same_fingerprint,
    require_same_shapes,
)
from relaax.errors import ConfigurationError
from relaax.parameters.parameter_store import ParameterStore, Snapshot, Store
from relaax.parameters.schedule import Linear, exploration_slots, require_no_more_exploration
from relaax.telemetry.metrics import (
    EPISODE_AFTER,
    EPISODE_OF,
    EVALUATION_REWARD_AFTER,
    EVALUATION_REWARD_OF,
)

_log = logging.getLogger(__name__)

#: The name that checkpoints give the parameters, beside the optimiser's slots.
PARAMETERS = "parameters"

#: Beginnings of the names of tensors that belong to no optimiser.
NO_SLOTS = (SCHEDULE, POLICIES)


#: Names of tensors of values that a learner publishes begin so.
_PUBLISHED = "published"

#: The newest scores are kept; learners ask for them several times a second.
MOST_SCORES = 10_000


class EvaluationLog(Metrics):
    """Passes scalars on to ``metrics``, and keeps scores of versions for the learner.

    A score is kept with the learner's step at which the version was published. Many threads may
    call it at once.
    """

    def __init__(self, metrics: Metrics, store: Store) -> None:
        self._metrics = metrics
        self._store = store
        self._lock = threading.Lock()
        self._scores: deque[tuple[int, float]] = deque(maxlen=MOST_SCORES)
        self._count = 0

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Pass a scalar on, and keep it if it is the score of a known version.

        Numbers of episodes are passed on at the learner's step, if that is known.
        """
        if name.startswith(EPISODE_OF) and x is not None:
            step = self._store.database_version(int(x))
            if step is not None:
                name = EPISODE_AFTER + name.removeprefix(EPISODE_OF)
                self._metrics.scalar(name, y, step)
            return
        iteration = None if x is None else self._iteration(name, int(x))
        if iteration is not None:
            with self._lock:
                self._scores.append((iteration, float(y)))
                self._count += 1
        self._metrics.scalar(name, y, x)

    def _iteration(self, name: str, x: int) -> int | None:
        """Return the learner's step whose policy a scalar scores; None for other scalars."""
        if name == EVALUATION_REWARD_AFTER:  # not if the learner has gone back since
            return x if x <= self._store.iteration else None
        return self._store.iteration_of(x) if name == EVALUATION_REWARD_OF else None

    def after(self, count: int) -> Evaluations:
        """Return the scores behind the first ``count``."""
        with self._lock:
            new = self._count - count if count <= self._count else self._count
            scores = list(self._scores)[-new:] if new else []
            return Evaluations(self._count, scores)


class ParameterService(ParameterLink):
    """The parameter server's end of the link; many threads call it at once."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        self._metrics = EvaluationLog(metrics, store)

    def add(self, steps: int) -> int:
        """See ParameterLink."""
        return self._store.add(steps)

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """See ParameterLink."""
        return self._store.pull(known, policy)

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """See ParameterLink."""
        return self._store.push(update, policy)

    def evaluations(self, after: int = 0) -> Evaluations:
        """See ParameterLink."""
        return self._metrics.after(after)

    def metrics(self) -> Metrics:
        """See ParameterLink."""
        return self._metrics


class ParameterServer(ParameterServerBase):
    """Serves a store to workers through ``service``, and keeps it in checkpoints.

    ``fingerprint`` describes the network: a checkpoint must have the same. The training is over
    at ``max_global_step`` environment steps. Where nothing ``learns``, a training without a
    checkpoint is worth a warning. It ``has_shards`` where each update is of one gradient.
    ``exploration`` are the schedules of the actors' exploration by name, which checkpoints hold
    since actors have none.
    """

    def __init__(
        self,
        store: Store,
        service: ParameterLink,
        saver: Saver,
        fingerprint: Fingerprint,
        max_global_step: float,
        learns: bool = True,
        has_shards: bool = True,
        exploration: Mapping[str, Linear] | None = None,
    ) -> None:
        # Without the base class's own, which keeps a configuration for those that read it.
        self.saver = saver
        self._store = store
        self._service = service
        self._fingerprint = fingerprint
        self._max_global_step = max_global_step
        self._learns = learns
        self._has_shards = has_shards
        self._exploration = exploration or {}
        #: How much had been published, at least, when something was saved last.
        self._saved = 0
        store.end_at(max_global_step)

    def restore_latest_checkpoint(self) -> None:
        """Restore the latest checkpoint, if any.

        CheckpointMismatch if it is of another network or another optimiser.
        """
        checkpoint = self.saver.restore_latest()
        if checkpoint is None:
            if not self._learns:
                _log.warning(
                    "learn: false, and there is no checkpoint in %s: what is served has learnt "
                    "nothing",
                    self.saver.location(),
                )
            return
        location = self.saver.location()
        require_same_fingerprint(checkpoint.fingerprint, self._fingerprint, location)
        expected = self._checkpoint().tensors
        _require_same_optimizer(checkpoint.tensors, expected, location)
        checkpoint = completed(checkpoint, expected)
        require_same_shapes(checkpoint, expected)
        slots = {name: slot for name, slot in checkpoint.tensors.items() if name != PARAMETERS}
        require_no_more_exploration(self._exploration, slots, checkpoint.global_t)
        self._store.restore(
            Snapshot(
                parameters=checkpoint.tensors[PARAMETERS],
                slots=slots,
                global_t=checkpoint.global_t,
                version=checkpoint.version,
            )
        )

    def divide(self, shard: Shard) -> Slice:
        """Own the slice of ``shard`` alone; see ``ParameterServerBase``."""
        store = self._store
        if not isinstance(store, ParameterStore) or not self._has_shards:
            raise ConfigurationError(
                "--shard: only parameters that single gradients move have shards; for what a "
                "learner publishes there are replicas (--replica-of)"
            )
        try:
            part = store.keep(*shard.place(store.size))
        except ValueError as error:
            raise ConfigurationError(f"--shard {shard}: {error}: give fewer shards") from error
        self._fingerprint = {**self._fingerprint, "shard": str(shard)}
        return part

    def save_checkpoint(self) -> None:
        """Save parameters, the optimiser's slots or the published policies, and counts."""
        published = self._store.publications  # before the snapshot, which may have more
        self.saver.save(self._checkpoint())
        self._saved = published

    def save_published(self) -> None:
        """Save new publications until the next of them, or a checkpoint, is saved."""
        published = self._store.publications
        if published != self._saved:
            self.saver.save_until_next(self._checkpoint())
            self._saved = published

    def global_t(self) -> int:
        """Return the environment steps that all agents have taken."""
        return self._store.global_t

    def bridge(self) -> ParameterLink:
        """Return the service that answers workers."""
        return self._service

    def updates(self) -> int | None:
        """Return the number of changes of the parameters."""
        return self._store.version

    def training_is_over(self) -> bool:
        """Return whether ``max_global_step`` is reached."""
        return self._store.global_t >= self._max_global_step

    def max_global_step(self) -> float:
        """Return the global step at which the training is over."""
        return self._max_global_step

    def stop_training(self) -> None:
        """Take no more updates."""
        self._store.freeze()

    def _checkpoint(self) -> Checkpoint:
        snapshot = self._store.snapshot()
        return Checkpoint(
            tensors={
                PARAMETERS: snapshot.parameters,
                **snapshot.slots,
                **exploration_slots(self._exploration),
            },
            global_t=snapshot.global_t,
            version=snapshot.version,
            fingerprint=self._fingerprint,
        )


def _require_same_optimizer(saved: Iterable[str], expected: Iterable[str], location: str) -> None:
    """Raise CheckpointMismatch unless tensors of these names are of one optimiser's slots."""
    before, now = _optimizer_of(saved), _optimizer_of(expected)
    if before != now:
        raise CheckpointMismatch(
            f"the checkpoint in {location} is of a training with {before}, and this configuration "
            f"asks for {now}. Use another checkpoint location or the settings that made it"
        )


def _optimizer_of(names: Iterable[str]) -> str:
    """Return in words the owner of the slots among these names of tensors."""
    slots = [name for name in names if name != PARAMETERS and not name.startswith(NO_SLOTS)]
    prefixes = {name.split("/")[0] for name in slots}
    if _PUBLISHED in prefixes:
        return "a learner of its own, which publishes (learner: process)"
    return f"the optimiser {' and '.join(sorted(prefixes)) or 'none'}"

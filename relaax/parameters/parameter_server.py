"""The owner of a training's global parameters."""

import logging
from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from relaax.algorithm_base import (
    Checkpoint,
    CheckpointMismatch,
    ParameterLink,
    ParameterServerBase,
    Saver,
    Shard,
    Slice,
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
from relaax.parameters.parameter_store import ParameterStore, Snapshot
from relaax.parameters.schedule import exploration_slots, require_no_more_exploration
from relaax.parameters.schedules import Linear

_log = logging.getLogger(__name__)

#: The name that checkpoints give the parameters, beside the optimiser's slots.
PARAMETERS = "parameters"

#: Beginnings of the names of tensors that belong to no optimiser.
NO_SLOTS = (SCHEDULE, POLICIES)


class Store(Protocol):
    """What holds parameters that may be saved and restored: ``ParameterStore``, for instance."""

    @property
    def global_t(self) -> int:
        """Environment steps of all agents together."""

    @property
    def version(self) -> int:
        """Number of changes."""

    def end_at(self, last_step: float) -> None:
        """Change nothing once the global step has reached ``last_step``."""

    def freeze(self) -> None:
        """Change nothing from now on."""

    def snapshot(self) -> Snapshot:
        """Return what a checkpoint holds."""

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from ``snapshot``."""


StoreT = TypeVar("StoreT", bound=Store)


class ParameterServer(ParameterServerBase, Generic[StoreT]):
    """Serves a store to workers through ``service``, and keeps it in checkpoints.

    ``fingerprint`` says what a checkpoint must agree on: what the network is. The training is over
    at ``max_global_step`` environment steps. Where nothing ``learns``, a training without a
    checkpoint is worth a warning. It ``has_shards`` where each update is of one gradient. Of
    ``exploration`` checkpoints remember how it changes, by name: actors have none.
    """

    def __init__(
        self,
        store: StoreT,
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
        size = store.read()[0].size
        try:
            part = store.keep(*shard.place(size))
        except ValueError as error:
            raise ConfigurationError(f"--shard {shard}: {error}: give fewer shards") from error
        self._fingerprint = {**self._fingerprint, "shard": str(shard)}
        return part

    def save_checkpoint(self) -> None:
        """Save parameters, optimiser slots, global step and version."""
        self.saver.save(self._checkpoint())

    def global_t(self) -> int:
        """Return the environment steps that all agents have taken."""
        return self._store.global_t

    def bridge(self) -> ParameterLink:
        """Return what answers the workers."""
        return self._service

    def updates(self) -> int | None:
        """Return how often the parameters have been changed, or published."""
        return self._store.version

    def training_is_over(self) -> bool:
        """Return whether ``max_global_step`` is reached."""
        return self._store.global_t >= self._max_global_step

    def max_global_step(self) -> float:
        """Return the global step at which the training is over."""
        return self._max_global_step

    def stop_training(self) -> None:
        """Take no more gradients."""
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
            f"the checkpoint in {location} is of a training with the optimiser {before}, and this "
            f"configuration asks for {now}. Use another checkpoint location or the optimiser that "
            "made it"
        )


def _optimizer_of(names: Iterable[str]) -> str:
    """Return whose slots are among these names of tensors."""
    slots = [name for name in names if name != PARAMETERS and not name.startswith(NO_SLOTS)]
    prefixes = {name.split("/")[0] for name in slots}
    return " and ".join(sorted(prefixes)) or "none"

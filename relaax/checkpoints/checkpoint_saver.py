"""Writes checkpoints, restores the latest, and deletes old ones."""

import logging
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from relaax.algorithm_base.checkpoint import Checkpoint, Saver
from relaax.checkpoints.manifest import (
    CheckpointManifest,
    describe,
    manifest_in,
    manifest_name,
    parse,
    step_of_data,
    steps_of_manifests,
)
from relaax.checkpoints.restoring import Restore
from relaax.checkpoints.scores import Ranking, score_name, step_of_score
from relaax.checkpoints.store import BlobStore
from relaax.errors import CheckpointError, ConfigurationError, DamagedCheckpoint
from relaax.parameters.sender_totals import SenderTotals

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MeanReturn:
    """The returns of a training's last episodes."""

    mean: float
    episodes: int


class CheckpointSaver(Saver):
    """Keeps the ``keep`` newest checkpoints in a store, each as a pair of blobs.

    Step 42 is the data blob ``cp-42.<12 digits>.safetensors`` and the manifest ``cp-42.json``.

    Saving:

    1. Damaged checkpoints that the last restore skipped are set aside: ``damaged-`` is put before
       their names. They no longer count as one of the ``keep`` newest, and later restores ignore
       them. Their bytes remain, so that a person can inspect them. With ``restore``, the
       checkpoints after the restored one get ``abandoned-``: the training has gone on from there.
       All stay as they are while the restored step itself is saved again.
    2. The data blob is written, then the manifest. A kill between the two leaves an orphan: a data
       blob that is named by no manifest. It is not a checkpoint.
    3. All but the ``keep`` newest and the ``keep_best`` best checkpoints are deleted, and all
       orphans. The checkpoint just written always stays. A failure in this stage is a warning: the
       new checkpoint is safe.

    Restoring changes nothing. It takes the highest step whose manifest can be read and whose data
    has the manifest's size and sha256, and logs a warning for each checkpoint that it skips. A
    store that cannot be reached raises CheckpointError; no checkpoint is skipped for that. With
    ``restore`` it takes another one; ConfigurationError if that does not exist.

    A checkpoint that is saved until the next one is as any other, but is deleted then, and has no
    score. Remains of a killed process are deleted in the same way.

    Checkpoints are ranked by evaluation score (``scores``). Without any score, they are ranked by
    the training's ``mean_return``, and the number of its episodes, when they were saved.

    The counts of ``senders`` up to its step are saved with a checkpoint, and restored with it.

    Not thread-safe. Only one process at a time may save to a store.
    """

    def __init__(
        self,
        store: BlobStore,
        keep: int = 5,
        keep_best: int = 0,
        restore: Restore | None = None,
        mean_return: Callable[[], MeanReturn | None] = lambda: None,
        senders: SenderTotals | None = None,
    ) -> None:
        if keep < 1:
            raise ConfigurationError(
                f"the number of checkpoints to keep must be 1 or more, is {keep}"
            )
        self._store = store
        self._keep = keep
        self._keep_best = keep_best
        self._restore = restore or Restore()
        self._mean_return = mean_return
        self._senders = senders or SenderTotals()
        #: How good the checkpoints are; it takes the scores of evaluations.
        self.scores = Ranking(store)
        #: By step: the data that its manifest names, where that was read or written here.
        self._data: dict[int, str] = {}
        #: The prefix that checkpoints get at the next save of another step than the restored one.
        self._set_aside_as: dict[int, str] = {}
        self._restored: int | None = None
        #: The steps of checkpoints that are kept until the next one is saved.
        self._passing: set[int] = set()

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, then delete old ones; CheckpointError if it cannot be written."""
        manifest = self._write(checkpoint)
        self.scores.saved(manifest.global_t, manifest.version)
        self.close()
        self._delete_old(manifest, self._keep)
        self._passing = set()

    def save_until_next(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint beside the kept ones, in the place of the last of its kind.

        A kept checkpoint of the same step is replaced, and kept.
        """
        step = checkpoint.global_t
        if step not in self._passing and manifest_name(step) in self._store.names():
            return self.save(checkpoint)
        self._delete_old(self._write(checkpoint, until_next=True), self._keep + 1)
        self._passing = {step}
        return None

    def restore_latest(self) -> Checkpoint | None:
        """Return the newest undamaged checkpoint, or the one of ``restore``.

        None if there is no checkpoint.
        """
        self._set_aside_as = {}
        return self._restore_whole()

    def restore_before(self, step: int) -> Checkpoint | None:
        """Give up the checkpoint of ``step`` as damaged, and return the newest one before it.

        None if there is no earlier one, or if another than the latest is to be restored.
        """
        if not self._restore.is_latest:
            return None
        later = [each for each in self.steps() if each >= step]
        self._set_aside_as |= dict.fromkeys(later, "damaged-")
        return self._restore_whole()

    def _restore_whole(self) -> Checkpoint | None:
        steps = steps_of_manifests(self._store.names())
        manifests = {step: manifest_in(self._store, step) for step in steps}
        found = [manifest for manifest in manifests.values() if manifest is not None]
        self._passing = {manifest.global_t for manifest in found if manifest.until_next}
        self._data = {manifest.global_t: manifest.data for manifest in found}
        self.scores.load(found)
        for global_t in self._restore.candidates(steps, self.scores.best(), self.location()):
            if global_t in self._set_aside_as:
                continue
            try:
                manifest, checkpoint = self._load(global_t)
            except DamagedCheckpoint as damage:
                self._set_aside_as[global_t] = "damaged-"
                _log.warning(
                    "skipping the damaged checkpoint %s in %s: %s",
                    manifest_name(global_t),
                    self.location(),
                    damage,
                )
            else:
                self._go_on_from(checkpoint, steps)
                self._senders.restore(manifest.totals())
                return checkpoint
        if steps and not self._restore.is_latest:
            raise ConfigurationError(
                f"{self._restore.option}: no such checkpoint in {self.location()} is whole"
            )
        return None

    def steps(self) -> set[int]:
        """Return the steps of all checkpoints that are there."""
        return steps_of_manifests(self._store.names())

    def delete_all_but(self, steps: Collection[int]) -> None:
        """Delete the checkpoints of other steps."""
        for step in sorted(self.steps() - set(steps)):
            self._set_aside_as.pop(step, None)
            self._delete(manifest_name(step))

    def close(self) -> None:
        """Write the scores of evaluations that have ended; also late ones of older checkpoints."""
        try:
            self.scores.write()
        except CheckpointError as error:
            _log.warning("cannot write a score: %s", error)

    def location(self) -> str:
        """Return the store's location."""
        return self._store.location()

    def _write(self, checkpoint: Checkpoint, until_next: bool = False) -> CheckpointManifest:
        data = _encode(checkpoint)
        totals = self._senders.as_of(checkpoint.global_t)
        manifest = describe(checkpoint, data, totals).model_copy(
            update={"until_next": until_next, **self._earned()}
        )
        if checkpoint.global_t != self._restored:
            self._set_all_aside()
        sys.audit("relaax.saver.data")
        try:
            self._store.put(manifest.data, data)
            sys.audit("relaax.saver.manifest")
            self._store.put(manifest.name(), manifest.to_bytes())
        except CheckpointError:
            self._make_room()
            raise
        self._set_aside_as.pop(manifest.global_t, None)
        sys.audit("relaax.saver.written")
        self._data[manifest.global_t] = manifest.data
        self.scores.note(manifest)
        return manifest

    def _earned(self) -> dict[str, Any]:
        """Return a manifest's returns of the training."""
        earned = self._mean_return()
        if earned is None or not isfinite(earned.mean):
            return {}
        return {"mean_return": earned.mean, "episodes": earned.episodes}

    def _go_on_from(self, restored: Checkpoint, steps: Iterable[int]) -> None:
        """Note the restored step, and the steps that are given up with it."""
        self.scores.go_on_from(restored.global_t, restored.version)
        self._restored = restored.global_t
        if not self._restore.is_latest:
            later = [step for step in steps if step > restored.global_t]
            self._set_aside_as = dict.fromkeys(later, "abandoned-") | self._set_aside_as

    def _load(self, global_t: int) -> tuple[CheckpointManifest, Checkpoint]:
        manifest = parse(self._store.get(manifest_name(global_t)), global_t)
        data = self._store.get(manifest.data)
        manifest.verify(data)
        return manifest, _decode(manifest, data)

    def _make_room(self) -> None:
        """Delete data that no manifest names: on a full disk it would keep the next save out."""
        names = self._names()
        for name in self._orphans(names, steps_of_manifests(names)):
            self._delete(name)

    def _names(self) -> list[str]:
        """Return all names; with a warning none, where the store cannot be reached."""
        try:
            return self._store.names()
        except CheckpointError as error:
            _log.warning("cannot look for checkpoints to delete: %s", error)
            return []

    def _set_all_aside(self) -> None:
        """Rename the checkpoints that are set aside; failures are tried again at the next save."""
        self.scores.forget(self._set_aside_as)
        for global_t, prefix in list(self._set_aside_as.items()):
            try:
                self._set_aside(global_t, prefix)
                del self._set_aside_as[global_t]
            except CheckpointError as error:
                _log.warning(
                    "cannot set the %s checkpoint of step %d aside: %s",
                    prefix.rstrip("-"), global_t, error,
                )  # fmt: skip

    def _set_aside(self, global_t: int, prefix: str) -> None:
        names = set(self._store.names())
        # The manifest is renamed last: while it is there, its data is not deleted as an orphan.
        data = sorted(name for name in names if step_of_data(name) == global_t)
        for name in [score_name(global_t), *data, manifest_name(global_t)]:
            if name in names:
                sys.audit("relaax.saver.aside")
                self._store.rename(name, _free_name(f"{prefix}{name}", names))

    def _delete_old(self, written: CheckpointManifest, keep: int) -> None:
        """Keep so many of the newest, with the one just written, and the best."""
        names = self._names()
        steps = steps_of_manifests(names)
        others = sorted(
            steps - {written.global_t, *self._passing, *self._set_aside_as}, reverse=True
        )
        best = [step for step in self.scores.best() if step in steps][: self._keep_best]
        kept = {written.global_t, *others[: keep - 1], *best, *self._set_aside_as}
        retired = steps - kept
        not_deleted = {step for step in sorted(retired) if not self._delete(manifest_name(step))}
        kept |= not_deleted
        self.scores.forget(retired - not_deleted)
        scores_of_none = [name for name in names if step_of_score(name) not in {None, *kept}]
        for name in [*self._orphans(names, kept), *scores_of_none]:
            self._delete(name)

    def _orphans(self, names: Iterable[str], kept: Collection[int]) -> list[str]:
        """Return the data blobs that no manifest of the steps ``kept`` names, if that is known."""
        steps = {name: step_of_data(name) for name in names}
        return [
            name
            for name, step in steps.items()
            if step is not None and (step not in kept or self._data.get(step, name) != name)
        ]

    def _delete(self, name: str) -> bool:
        sys.audit("relaax.saver.delete")
        try:
            self._store.delete(name)
        except CheckpointError as error:
            _log.warning("cannot delete an old checkpoint: %s", error)
            return False
        return True


def _free_name(name: str, taken: set[str]) -> str:
    free, number = name, 1
    while free in taken:
        free, number = f"{name}.{number}", number + 1
    return free


def _encode(checkpoint: Checkpoint) -> bytes:
    # safetensors copies an array's memory as it lies: another order than C would be saved wrongly.
    tensors = {name: np.asarray(value, order="C") for name, value in checkpoint.tensors.items()}
    try:
        return safetensors.save(tensors)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        kinds = {name: str(value.dtype) for name, value in tensors.items()}
        raise CheckpointError(f"cannot write tensors of types {kinds}: {error}") from error


def _decode(manifest: CheckpointManifest, data: bytes) -> Checkpoint:
    try:
        tensors = safetensors.load(data)
    except (SafetensorError, KeyError, ValueError) as error:
        raise DamagedCheckpoint(f"{manifest.data} is not in safetensors format: {error}") from error
    return Checkpoint(
        tensors={name: np.require(value, requirements="W") for name, value in tensors.items()},
        global_t=manifest.global_t,
        version=manifest.version,
        fingerprint=manifest.fingerprint,
    )

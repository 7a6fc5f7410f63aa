"""Saves a replay's contents, and restores them."""

import logging

from relaax.algorithm_base import Checkpoint
from relaax.algorithm_base.checkpoint import require_same_fingerprint
from relaax.checkpoints import BlobStore, CheckpointSaver
from relaax.checkpoints.manifest import manifest_name
from relaax.errors import DamagedCheckpoint
from relaax.replay.replay import Replay
from relaax.replay.specs import ReplaySpec
from relaax.telemetry.operators import SaveRecord

_log = logging.getLogger(__name__)


def restored_contents(
    replay: Replay, spec: ReplaySpec, store: BlobStore, saves: SaveRecord | None = None
) -> "Contents":
    """Restore a replay's contents in ``store``, and print it; return their saver."""
    contents = Contents(replay, spec, CheckpointSaver(store, keep=1), saves)
    if count := contents.restore():
        print(f"restored {count:,} steps from {store.location()}", flush=True)
    return contents


class Contents:
    """The contents of ``replay``, which is made by ``spec``, in a place for checkpoints.

    A save is whole or not there at all, whenever the process is killed. ``saves`` counts them.
    """

    def __init__(
        self,
        replay: Replay,
        spec: ReplaySpec,
        saver: CheckpointSaver,
        saves: SaveRecord | None = None,
    ) -> None:
        self._saves = saves or SaveRecord()
        self._replay = replay
        self._saver = saver
        self._fingerprint = {
            "columns": [f"{name} {column}" for name, column in spec.schema.columns.items()],
            "capacity": spec.capacity,
            "rows": "by age",
            "tables": [f"{name}: {table.kind}" for name, table in spec.tables.items()],
            **spec.fingerprint,
        }
        self._saved = 0

    def restore(self) -> int:
        """Restore the last saved contents, if any; return how many steps these are.

        Damaged contents are skipped with a warning: their bytes are not the written ones, or no
        replay can have written them. CheckpointMismatch, which names the differences, for the
        contents of another replay, or another process's checkpoint.
        """
        checkpoint = self._saver.restore_latest()
        while checkpoint is not None:
            place = self._saver.location()
            require_same_fingerprint(checkpoint.fingerprint, self._fingerprint, place)
            try:
                self._replay.restore(checkpoint.tensors)
            except DamagedCheckpoint as damage:
                name = manifest_name(checkpoint.global_t)
                _log.warning("skipping the damaged checkpoint %s in %s: %s", name, place, damage)
                checkpoint = self._saver.restore_before(checkpoint.global_t)
            else:
                self._saved = self._replay.changes
                return len(self._replay)
        return 0

    def save(self) -> None:
        """Save, if anything has changed since then; CheckpointError if that is impossible."""
        changes = self._replay.changes
        if changes == self._saved:
            self._saves.note_current()
            return
        with self._saves.saving():
            self._saver.save(Checkpoint(self._replay.contents(), changes, 0, self._fingerprint))
        self._saved = changes

    def save_or_warn(self) -> None:
        """Save; where that fails, storing goes on: at the next time there may be room again."""
        try:
            self.save()
        except Exception:
            _log.exception("the stored steps were not saved")

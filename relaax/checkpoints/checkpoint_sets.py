"""Sets of checkpoints: each shard of a parameter server saves a part of its own."""

import logging
import secrets
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from relaax.algorithm_base import Checkpoint, NullSaver, Saver, Shard
from relaax.checkpoints.checkpoint_saver import CheckpointSaver
from relaax.checkpoints.restoring import Restore
from relaax.checkpoints.store import BlobStore
from relaax.errors import CheckpointError, CheckpointMismatch, ConfigurationError

_log = logging.getLogger(__name__)

#: The array of a part with the name of its set.
SET = "set"

_BYTES = 8

#: More than are ever there: the first shard says which parts are deleted.
_KEEP_ALL = 10**9


class ShardAway(CheckpointError):
    """A shard does not answer, so that no set can be saved."""


#: Let the other shards save: of a set with this name, at this global step; the steps of others of
#: their parts that are kept. ShardAway, or CheckpointError for a shard that cannot save.
SaveParts = Callable[[str, int, Iterable[int]], None]


class FirstSaver(Saver):
    """Saves the first shard's parts, each when all others have saved theirs.

    A set has a random name, and a checkpoint of the first shard makes it whole. While another shard
    is away, the first one goes on with the last whole set: its newer part takes that name, too.
    For several threads.
    """

    def __init__(self, saver: CheckpointSaver | NullSaver, save_parts: SaveParts) -> None:
        self._saver = saver
        self._save_parts = save_parts
        self._saving = threading.Lock()
        #: The name of the last whole set, or of the first one to come, and the newest step in it;
        #: None if nothing is saved yet.
        self.set_id = _new_set()
        self.global_t: int | None = None

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a set; CheckpointError if a shard cannot save its part. Each step is saved once."""
        with self._saving:
            if isinstance(self._saver, NullSaver) or self._is_saved(checkpoint):
                return
            new, kept = _new_set(), sorted(self._saver.steps())
            try:
                self._save_parts(new, checkpoint.global_t, kept)
            except ShardAway as error:
                if self.global_t is None:
                    raise
                _log.warning(
                    "%s: only the first shard has saved step %d", error, checkpoint.global_t
                )
                new = self.set_id
            sys.audit("relaax.shards.set")
            self._saver.save(part_of(checkpoint, new))
            self.set_id, self.global_t = new, checkpoint.global_t

    def restore_latest(self) -> Checkpoint | None:
        """Return the first shard's part of the latest set, and go on with that set."""
        part = self._saver.restore_latest()
        if part is None:
            return None
        checkpoint, self.set_id = split(part, self.location())
        self.global_t = checkpoint.global_t
        return checkpoint

    def location(self) -> str:
        """Return the place of the first shard's parts."""
        return self._saver.location()

    def _is_saved(self, checkpoint: Checkpoint) -> bool:
        """Return whether this step is saved, or nothing was learnt yet.

        Another set of the same step would replace the parts of the first one by one.
        """
        if self.global_t is None:
            return checkpoint.version == checkpoint.global_t == 0
        return checkpoint.global_t == self.global_t


class PartSaver(Saver):
    """Saves another shard's parts in a store of its own; without a store none can be saved.

    ``set_id`` and ``global_t`` name the set of the next part, and ``kept`` are the steps of others
    that stay when it is saved.
    """

    def __init__(self, store: BlobStore | None, shard: Shard) -> None:
        self._store = store
        self._shard = shard
        self._saver = None if store is None else CheckpointSaver(store, _KEEP_ALL)
        self.set_id = ""
        self.global_t = 0
        self.kept: set[int] = set()
        #: The step of the newest part, which stays until the set of the next one is whole.
        self._newest: int | None = None

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a part; CheckpointError if it cannot be written."""
        if self._saver is None:
            raise CheckpointError(
                "this shard has no --checkpoint-dir and no --checkpoint-aws-s3 to save to"
            )
        part = replace(checkpoint, global_t=self.global_t)
        self._saver.save(part_of(part, self.set_id))
        self._saver.delete_all_but({self.global_t, self._newest or 0, *self.kept})
        self._newest = self.global_t

    def restore_latest(self) -> Checkpoint:
        """Return the newest part of the set; CheckpointMismatch if there is no whole one."""
        if self._store is None:
            raise ConfigurationError(
                "this shard has no --checkpoint-dir and no --checkpoint-aws-s3 to restore from"
            )
        self._saver, checkpoint = newest_part(self._store, self.set_id, self._shard, self.global_t)
        self._newest = self.global_t = checkpoint.global_t
        return checkpoint

    def location(self) -> str:
        """Return the place of this shard's parts."""
        return NullSaver().location() if self._store is None else self._store.location()


def newest_part(
    store: BlobStore, set_id: str, shard: Shard, global_t: int
) -> tuple[CheckpointSaver, Checkpoint]:
    """Return a shard's newest part of a set, and the saver that goes on from it.

    CheckpointMismatch, which names the shard and what there is, for a set of step ``global_t`` of
    which no part is there, or none that is whole.
    """
    faults = []
    for step in sorted(CheckpointSaver(store).steps(), reverse=True):
        saver = CheckpointSaver(store, _KEEP_ALL, restore=Restore(step=step))
        try:
            part = saver.restore_latest()
        except ConfigurationError:  # the log has said what is wrong
            faults.append(f"that of step {step:,} is damaged")
            continue
        checkpoint, its_set = (None, "") if part is None else split(part, store.location())
        if checkpoint is not None and its_set == set_id:
            return saver, checkpoint
        faults.append(f"that of step {step:,} is of another set")
    raise CheckpointMismatch(
        f"the checkpoint of step {global_t:,} is not whole: the part of shard {shard} is missing "
        f"in {store.location()} ({'; '.join(faults) or 'nothing is there'}). Start all shards with "
        "--restore and the step of a set that is whole, or with another checkpoint location"
    )


def _new_set() -> str:
    return secrets.token_hex(_BYTES)


def part_of(checkpoint: Checkpoint, set_id: str) -> Checkpoint:
    """Return a shard's checkpoint as a part of a set."""
    mark = np.frombuffer(bytes.fromhex(set_id), np.uint8)
    return replace(checkpoint, tensors={**checkpoint.tensors, SET: mark})


def split(part: Checkpoint, location: str) -> tuple[Checkpoint, str]:
    """Return a shard's checkpoint, and the name of its set.

    CheckpointMismatch if it belongs to no set.
    """
    tensors = dict(part.tensors)
    mark = tensors.pop(SET, None)
    if mark is None or mark.shape != (_BYTES,) or mark.dtype != np.uint8:
        raise CheckpointMismatch(
            f"the checkpoint in {location} is of a parameter server without shards. Use another "
            "checkpoint location, or start one parameter server without --shard"
        )
    return replace(part, tensors=tensors), mark.tobytes().hex()

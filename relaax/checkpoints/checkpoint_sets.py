"""Sets of checkpoints: each shard of a parameter server saves a part of its own."""

import logging
import secrets
import sys
import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from relaax.algorithm_base import Checkpoint, NullSaver, Saver, Shard
from relaax.checkpoints.checkpoint_saver import CheckpointSaver
from relaax.checkpoints.restoring import Restore
from relaax.checkpoints.store import BlobStore
from relaax.errors import CheckpointError, CheckpointMismatch, ConfigurationError

_log = logging.getLogger(__name__)

#: The array of a part with the mark of its set.
SET = "set"

_BYTES = 8

#: More than are ever there: the first shard says which parts are deleted.
_KEEP_ALL = 10**9


class ShardAway(CheckpointError):
    """Shards, by these numbers, do not answer, so that no set can be saved."""

    def __init__(self, message: str, shards: Collection[int]) -> None:
        super().__init__(message)
        self.shards = shards


class SetName(NamedTuple):
    """The name of a set; ``mark``, 8 random bytes, tells it from another training's."""

    global_t: int
    mark: bytes

    def require_valid(self) -> None:
        """Raise ValueError for another mark than one of 8 bytes."""
        if len(self.mark) != _BYTES:
            raise ValueError(f"a set has a mark of {_BYTES} bytes, not {self.mark!r}")


#: Let the other shards save their parts of a set, and keep their parts of these other steps.
#: ShardAway, or CheckpointError for a shard that cannot save.
SaveParts = Callable[[SetName, Collection[int]], None]


class FirstSaver(Saver):
    """Saves the first shard's parts, each when all others have saved theirs.

    The first shard's part makes a set whole. For several threads.
    """

    def __init__(self, saver: CheckpointSaver | NullSaver, save_parts: SaveParts) -> None:
        self._saver = saver
        self._save_parts = save_parts
        self._saving = threading.Lock()
        #: The last whole set; None if there is none yet.
        self.last: SetName | None = None
        #: The numbers of the shards that have ended since, after they asked for a set.
        self.left: set[int] = set()

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a set; each step is saved once. Warn if shards are away that have left.

        ShardAway if one is away that has not, CheckpointError if one cannot save its part.
        """
        with self._saving:
            if isinstance(self._saver, NullSaver) or self._is_saved(checkpoint):
                return
            new = SetName(checkpoint.global_t, secrets.token_bytes(_BYTES))
            try:
                self._save_parts(new, self._saver.steps())
            except ShardAway as error:
                if self.last is None or not self.left.issuperset(error.shards):
                    raise
                _log.warning("%s; the last one is of step %d", error, self.last.global_t)
                return
            sys.audit("relaax.shards.set")
            self._saver.save(part_of(checkpoint, new.mark))
            self.last = new
            self.left.clear()

    def restore_latest(self) -> Checkpoint | None:
        """Return the first shard's part of the latest set, and go on with that set."""
        part = self._saver.restore_latest()
        if part is None:
            return None
        checkpoint, mark = split(part, self.location())
        self.last = SetName(checkpoint.global_t, mark)
        return checkpoint

    def location(self) -> str:
        """Return the place of the first shard's parts."""
        return self._saver.location()

    def _is_saved(self, checkpoint: Checkpoint) -> bool:
        """Return whether this step or a later one is saved, or nothing was learnt yet.

        Another set of the same step would replace the parts of the first one by one.
        """
        if self.last is None:
            return checkpoint.version == checkpoint.global_t == 0
        return checkpoint.global_t <= self.last.global_t


class PartSaver(Saver):
    """Saves another shard's parts in a store of its own; without a store none can be saved.

    ``name`` is the set of the next part, and the one to restore; ``kept`` are the steps of other
    parts that stay when it is saved; ``has_place`` says whether there is a store.
    """

    def __init__(self, store: BlobStore | None, shard: Shard) -> None:
        self._store = store
        self._shard = shard
        self._saver = None if store is None else CheckpointSaver(store, _KEEP_ALL)
        self.has_place = store is not None
        self.name = SetName(0, bytes(_BYTES))
        self.kept: Collection[int] = ()

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a part; CheckpointError if it cannot be written."""
        if self._saver is None:
            raise CheckpointError(
                "this shard has no --checkpoint-dir and no --checkpoint-aws-s3 to save to"
            )
        step, mark = self.name
        self._saver.delete_all_but(self.kept)
        self._saver.save(part_of(replace(checkpoint, global_t=step), mark))

    def restore_latest(self) -> Checkpoint:
        """Return the part of the set; CheckpointMismatch if there is no whole one."""
        if self._store is None:
            raise ConfigurationError(
                "this shard has no --checkpoint-dir and no --checkpoint-aws-s3 to restore from"
            )
        self._saver, checkpoint = part_in(self._store, self.name, self._shard)
        return checkpoint

    def location(self) -> str:
        """Return the place of this shard's parts."""
        return NullSaver().location() if self._store is None else self._store.location()


def part_in(store: BlobStore, name: SetName, shard: Shard) -> tuple[CheckpointSaver, Checkpoint]:
    """Return a shard's part of a set, and the saver that goes on from it.

    CheckpointMismatch, which names the shard, for a part that is missing, damaged, or of another
    set.
    """
    saver = CheckpointSaver(store, _KEEP_ALL, restore=Restore(step=name.global_t, option="step"))
    fault = f"the part of this step in {store.location()} is of another set"
    try:
        part = saver.restore_latest()
    except ConfigurationError as error:
        part, fault = None, str(error)
    if part is not None:
        checkpoint, mark = split(part, store.location())
        if mark == name.mark:
            return saver, checkpoint
    raise CheckpointMismatch(
        f"the checkpoint of step {name.global_t:,} lacks the part of shard {shard}: {fault}. Start "
        "all shards with --restore and the step of a set that is whole, or with another checkpoint "
        "location"
    )


def part_of(checkpoint: Checkpoint, mark: bytes) -> Checkpoint:
    """Return a shard's checkpoint as a part of the set with this mark."""
    tensors = {**checkpoint.tensors, SET: np.frombuffer(mark, np.uint8)}
    return replace(checkpoint, tensors=tensors)


def split(part: Checkpoint, location: str) -> tuple[Checkpoint, bytes]:
    """Return a shard's checkpoint, and the mark of its set.

    CheckpointMismatch if it belongs to no set.
    """
    tensors = dict(part.tensors)
    mark = tensors.pop(SET, None)
    if mark is None or mark.shape != (_BYTES,) or mark.dtype != np.uint8:
        raise CheckpointMismatch(
            f"the checkpoint in {location} is of a parameter server without shards. Use another "
            "checkpoint location, or start one parameter server without --shard"
        )
    return replace(part, tensors=tensors), mark.tobytes()

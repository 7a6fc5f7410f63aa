"""Whether a learner saves what its own replay holds, and where."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from relaax.checkpoints import BlobStore, CheckpointSaver
from relaax.checkpoints.checkpoint_place import store_of
from relaax.configuration import LearnerOptions
from relaax.errors import CheckpointMismatch
from relaax.processes.available_memory import AvailableMemory
from relaax.replay.process.replay_contents import Contents, restored_contents
from relaax.replay.process.replay_memory import COPIES_OF_A_SAVE, replay_in_memory
from relaax.replay.replay import Replay
from relaax.replay.specs import ReplaySpec

_log = logging.getLogger(__name__)

#: Below the learner's own checkpoints.
REPLAY = "replay"

#: So much of what is free may be taken.
_SHARE = 0.9


def kept_replay(
    options: LearnerOptions, spec: ReplaySpec, is_replaying: bool, random: np.random.Generator
) -> tuple[Replay, Contents | None]:
    """Return the learner's own replay, and what saves it; see ``kept_contents``.

    ConfigurationError where there is no memory for it, and for what ``--save-replay`` copies.
    """
    replay = replay_in_memory(spec, random, options.lease, options.save_replay is True)
    return replay, kept_contents(options, replay, spec, is_replaying)


def kept_contents(
    options: LearnerOptions, replay: Replay, spec: ReplaySpec, is_replaying: bool
) -> Contents | None:
    """Restore what was saved of ``replay``, if it is to be saved; return what saves it again.

    By default it is saved where the steps of a full replay fit on the disk, and their copies in the
    memory, if the learner draws older steps. Where they do not, a line of the log says why.
    CheckpointMismatch for the contents of another replay, where ``options`` ask for them; by
    default that one begins empty, with a warning.
    """
    wanted = options.save_replay
    if wanted is False or (wanted is None and not is_replaying):
        return None
    store = _place(options)
    why_not = None if wanted else _obstacle(options, spec)
    if why_not is not None:
        _log.warning(
            "the stored steps are not saved: %s. A learner that is started again will learn when "
            "there are enough new ones", why_not
        )  # fmt: skip
    if store is None or why_not is not None:
        return None
    try:
        return restored_contents(replay, spec, store)
    except CheckpointMismatch as error:
        if wanted:
            raise
        _log.warning("the replay begins without the steps that were saved: %s", error)
        return Contents(replay, spec, CheckpointSaver(store, keep=1))


def _place(options: LearnerOptions) -> BlobStore | None:
    """Return where the stored steps are saved: beside the checkpoints."""
    return store_of(options.checkpoint_dir, options.checkpoint_aws_s3, options.aws, REPLAY)


def _obstacle(options: LearnerOptions, spec: ReplaySpec) -> str | None:
    """Return why they are not saved by default; None where they are."""
    directory = options.checkpoint_dir
    if options.checkpoint_aws_s3 is not None:
        return "each save would send all of them to S3 (--save-replay does so)"
    if directory is None:
        return "there is no --checkpoint-dir"
    return misfit(spec, directory / REPLAY, lambda: AvailableMemory().bytes())


def misfit(spec: ReplaySpec, directory: Path, available: Callable[[], int]) -> str | None:
    """Return why there is no room to save a full replay in ``directory``; None where there is.

    While one save is written, the one before is still there. Beside the replay itself, which has
    its memory already, there are a copy of it, and the bytes that are written of that.
    """
    size = spec.bytes
    saved = sum(path.stat().st_size for path in directory.glob("*") if path.is_file())
    place = directory
    while not place.exists():
        place = place.parent
    for what, need, free in (
        (f"the disk of {directory}", 2 * size - saved, shutil.disk_usage(place).free),
        ("the memory", COPIES_OF_A_SAVE * size, available()),
    ):
        if need > _SHARE * free:
            return (
                f"replay_size: {spec.capacity:,} steps may need {need / 1e9:,.1f} GB of {what}, "
                f"which has {free / 1e9:,.1f} GB (--save-replay saves them all the same)"
            )
    return None

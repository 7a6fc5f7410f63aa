"""Where a process keeps its checkpoints, by its options."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from relaax.algorithm_base import NullSaver
from relaax.checkpoints import (
    BlobStore,
    CheckpointSaver,
    DirectoryStore,
    MeanReturn,
    Restore,
    S3Store,
)
from relaax.checkpoints.aws import object_key, s3_client
from relaax.configuration import AwsAccess, S3Location
from relaax.errors import CheckpointError, ConfigurationError
from relaax.parameters.sender_totals import SenderTotals
from relaax.processes.stop_signal import Stop

#: How long it pauses after a failure; twice as long after the next one, up to the most.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0

_log = logging.getLogger(__name__)


def wait_for_store(s3: S3Location | None, aws: AwsAccess, give_up_s: float, stop: Stop) -> bool:
    """Wait until a place in S3 answers; return False if ``stop`` is set before.

    Without it a server cannot know which checkpoint is the newest: another machine may have gone on
    meanwhile. CheckpointError if S3 does not answer for
    ``give_up_s``; ConfigurationError at once if it answers that the place cannot be used.
    """
    if s3 is None:
        return True
    begin, pause_s = time.monotonic(), 0.0
    while not stop.wait(pause_s):
        try:
            # One attempt: between its repetitions a stop would not be looked at.
            found = S3Store(s3_client(aws, attempts=1), s3.bucket, s3.key)
        except CheckpointError as error:
            if time.monotonic() - begin > give_up_s:
                raise CheckpointError(
                    f"{error}; it did not answer for {give_up_s:g} s (--give-up)"
                ) from error
            if not pause_s:
                _log.warning("waiting for the store of checkpoints: %s", error)
            pause_s = min(max(2 * pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        else:
            if pause_s:
                _log.warning("%s answers: the server starts", found.location())
            return True
    return False


def store_of(
    directory: Path | None, s3: S3Location | None, aws: AwsAccess, below: str = ""
) -> BlobStore | None:
    """Return the store of a place, or ``below`` it; None where no place is given."""
    if s3 is not None:
        return S3Store(s3_client(aws), s3.bucket, object_key(s3.key, below), is_owner=True)
    return None if directory is None else DirectoryStore(directory / below)


def existing_store(
    directory: Path | None, s3: S3Location | None, aws: AwsAccess, option: str, below: str = ""
) -> BlobStore:
    """Return the reader of the checkpoints of a place, or ``below`` it; nothing is made or changed.

    ConfigurationError for a missing or unusable place; it names the ``option`` that needs one.
    """
    if s3 is not None:
        return S3Store(s3_client(aws), s3.bucket, object_key(s3.key, below))
    if directory is None:
        raise ConfigurationError(
            f"{option}: where are the checkpoints? Give --checkpoint-dir or --checkpoint-aws-s3, "
            "on the command line or in the YAML file"
        )
    return DirectoryStore(directory / below, is_only_read=True)


def saver_of(
    store: BlobStore | None,
    keep: int,
    keep_best: int = 0,
    restore: str = "latest",
    mean_return: Callable[[], MeanReturn | None] = lambda: None,
    senders: SenderTotals | None = None,
) -> CheckpointSaver | NullSaver:
    """Return the saver of the ``keep`` newest and the ``keep_best`` best checkpoints.

    Warns if there is no place for them. ``restore``: see ``Restore``; ``mean_return``: the
    training's mean return; ``senders`` keep each sender's count of steps.
    """
    if store is not None:
        parsed = Restore.parse(restore)
        return CheckpointSaver(store, keep, keep_best, parsed, mean_return, senders)
    _log.warning("no checkpoint will be saved: give --checkpoint-dir or --checkpoint-aws-s3")
    return NullSaver()

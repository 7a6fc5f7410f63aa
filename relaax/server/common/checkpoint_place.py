"""Where a process keeps its checkpoints, as its options say."""

import logging
from pathlib import Path

from relaax.algorithm_base import NullSaver
from relaax.server.common.aws import aws_session, s3_client
from relaax.server.common.configuration import S3Location
from relaax.server.common.saver import (
    BlobStore,
    CheckpointSaver,
    DirectoryStore,
    Restore,
    S3Store,
)

_log = logging.getLogger(__name__)


def store_of(
    directory: Path | None, s3: S3Location | None, aws_keys: Path | None
) -> BlobStore | None:
    """Return where blobs go; None where no place is given."""
    if s3 is not None:
        return S3Store(s3_client(aws_session(aws_keys)), s3.bucket, s3.key)
    return None if directory is None else DirectoryStore(directory)


def saver_of(
    store: BlobStore | None, keep: int, keep_best: int = 0, restore: str = "latest"
) -> CheckpointSaver | NullSaver:
    """Return what keeps the ``keep`` newest and the ``keep_best`` best checkpoints.

    Warn where there is no place for them. ``restore`` is what ``Restore`` reads.
    """
    if store is not None:
        return CheckpointSaver(store, keep, keep_best, Restore.parse(restore))
    _log.warning("no checkpoint will be saved: give --checkpoint-dir or --checkpoint-aws-s3")
    return NullSaver()

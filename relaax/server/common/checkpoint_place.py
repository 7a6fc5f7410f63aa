"""Where a process keeps its checkpoints, as its options say."""

import logging
from pathlib import Path

from relaax.algorithm_base import NullSaver, Saver
from relaax.server.common.aws import aws_session, s3_client
from relaax.server.common.configuration import S3Location
from relaax.server.common.saver import BlobStore, CheckpointSaver, DirectoryStore, S3Store

_log = logging.getLogger(__name__)


def store_of(
    directory: Path | None, s3: S3Location | None, aws_keys: Path | None
) -> BlobStore | None:
    """Return where blobs go; None where no place is given."""
    if s3 is not None:
        return S3Store(s3_client(aws_session(aws_keys)), s3.bucket, s3.key)
    return None if directory is None else DirectoryStore(directory)


def saver_of(store: BlobStore | None, keep: int) -> Saver:
    """Return what keeps the ``keep`` newest checkpoints; warn where there is no place for them."""
    if store is not None:
        return CheckpointSaver(store, keep)
    _log.warning("no checkpoint will be saved: give --checkpoint-dir or --checkpoint-aws-s3")
    return NullSaver()

"""Checkpoints in a directory or in AWS S3.

``CheckpointSaver`` decides what is written, accepted and kept; a ``BlobStore`` holds the bytes.
"""

from relaax.server.common.saver.checkpoint_saver import CheckpointSaver
from relaax.server.common.saver.directory_store import DirectoryStore
from relaax.server.common.saver.s3_store import S3Store
from relaax.server.common.saver.store import BlobStore

__all__ = ["BlobStore", "CheckpointSaver", "DirectoryStore", "S3Store"]

"""Checkpoints in a directory or in AWS S3.

``checkpoint_saver``  decides which checkpoints are written, accepted and kept
``scores``            ranks checkpoints by evaluation scores, or else by returns
``restoring``         which checkpoint a process begins with
``manifest``          the JSON text that describes and verifies a checkpoint
``store``             ``BlobStore``: the interface to the place that holds the bytes
``directory_store``   blobs as files
``s3_store``          blobs as objects in AWS S3
``aws``               access to AWS S3
``checkpoint_place``  where a process keeps its checkpoints
``checkpoint_list``   prints the table of the checkpoints
``checkpoint_sets``   a checkpoint of which each shard of a parameter server saves a part
"""

from relaax.checkpoints.checkpoint_saver import CheckpointSaver, MeanReturn
from relaax.checkpoints.directory_store import DirectoryStore
from relaax.checkpoints.restoring import Restore
from relaax.checkpoints.s3_store import S3Store
from relaax.checkpoints.store import BlobStore

__all__ = [
    "BlobStore", "CheckpointSaver", "DirectoryStore", "MeanReturn", "Restore", "S3Store"
]  # fmt: skip

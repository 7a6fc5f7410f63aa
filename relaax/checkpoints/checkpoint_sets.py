"""A checkpoint of which each shard saves a part."""

import secrets
from dataclasses import replace

import numpy as np

from relaax.algorithm_base import Checkpoint
from relaax.errors import CheckpointMismatch

#: The array of a part with the name of its set.
SET = "set"

_BYTES = 8


def new_set() -> str:
    """Return a name that no other checkpoint has."""
    return secrets.token_hex(_BYTES)


def part_of(checkpoint: Checkpoint, set_id: str) -> Checkpoint:
    """Return a shard's checkpoint as a part of a set."""
    mark = np.frombuffer(bytes.fromhex(set_id), np.uint8)
    return replace(checkpoint, tensors={**checkpoint.tensors, SET: mark})


def split(part: Checkpoint, location: str) -> tuple[Checkpoint, str]:
    """Return a shard's checkpoint, and its set.

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

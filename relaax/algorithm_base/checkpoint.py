"""A checkpoint as algorithms see it, and the rule for accepting one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import CheckpointMismatch

#: The beginning of the names of tensors that say how numbers change during a training.
SCHEDULE = "schedule/"

#: The beginning of the names of tensors of policies beside the default one.
POLICIES = "policies/"

#: Beginnings of the names of tensors that checkpoints of earlier versions lack.
_NEWER = ("published/training", "published/resumes", SCHEDULE)

#: Properties that a checkpoint and the configuration share: JSON scalars and lists by name.
Fingerprint = Mapping[str, Any]

#: The key of a fingerprint with the environment's actions at -1 and 1 of a policy's.
ACTION_UNITS = "action_units"

#: The meaning of a key that is absent, if it has one.
_ABSENT = {ACTION_UNITS: "[-1, 1], or of a version with the environment's own units,"}


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training at one global step."""

    #: Arrays by name: parameters and optimiser slots.
    tensors: Mapping[str, npt.NDArray[Any]]
    #: Environment steps of all agents together.
    global_t: int
    #: Number of updates applied to the parameters.
    version: int
    #: The network: algorithm, sizes, layers.
    fingerprint: Fingerprint


class Saver(ABC):
    """Where checkpoints go. Implementations are in ``relaax.checkpoints``."""

    @abstractmethod
    def save(self, checkpoint: Checkpoint) -> None:
        """Make ``checkpoint`` durable, so that a kill at any instant leaves a good one."""

    def save_until_next(self, checkpoint: Checkpoint) -> None:
        """Make ``checkpoint`` durable until the next is saved; by default it is not kept."""

    @abstractmethod
    def restore_latest(self) -> Checkpoint | None:
        """Return the newest undamaged checkpoint, or None where there is none."""

    @abstractmethod
    def location(self) -> str:
        """Say in words for people where the checkpoints are."""


class NullSaver(Saver):
    """The saver of a training that keeps nothing."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Drop the checkpoint."""

    def restore_latest(self) -> Checkpoint | None:
        """Return None: nothing was ever saved."""
        return None

    def location(self) -> str:
        """Say that there is no place."""
        return "nowhere (neither --checkpoint-dir nor --checkpoint-aws-s3 is given)"


def require_same_fingerprint(saved: Fingerprint, expected: Fingerprint, location: str) -> None:
    """Raise CheckpointMismatch unless both are equal, naming every key that differs."""
    missing = object()
    differences = [
        f"{key} is {_shown(saved, key)} in the checkpoint and {_shown(expected, key)} here"
        for key in sorted({*saved, *expected})
        if saved.get(key, missing) != expected.get(key, missing)
    ]
    if differences:
        raise CheckpointMismatch(
            f"the checkpoint in {location} is of another training: {'; '.join(differences)}. "
            "Use another checkpoint location or the configuration that made it"
        )


def _shown(fingerprint: Fingerprint, key: str) -> str:
    return repr(fingerprint[key]) if key in fingerprint else _ABSENT.get(key, "absent")


def completed(checkpoint: Checkpoint, expected: Mapping[str, npt.NDArray[Any]]) -> Checkpoint:
    """Return a checkpoint with the ``expected`` tensors that older ones lack.

    They are as in a training that begins.
    """
    newer = {name: tensor for name, tensor in expected.items() if name.startswith(_NEWER)}
    return replace(checkpoint, tensors={**newer, **checkpoint.tensors})


def require_same_shapes(checkpoint: Checkpoint, expected: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise CheckpointMismatch unless the tensors have the expected names, shapes and dtypes.

    Tensors of ``POLICIES``, of which there may be any number, are left out.
    """
    found = {
        name: (tensor.shape, tensor.dtype)
        for name, tensor in checkpoint.tensors.items()
        if not name.startswith(POLICIES)
    }
    wanted = {
        name: (tensor.shape, np.dtype(tensor.dtype))
        for name, tensor in expected.items()
        if not name.startswith(POLICIES)
    }
    if found != wanted:
        raise CheckpointMismatch(f"the checkpoint holds {found}, and the network needs {wanted}")

"""The parameters of several policies of one training, by name."""

import re
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import DEFAULT, FloatVector
from relaax.algorithm_base.checkpoint import POLICIES
from relaax.errors import CheckpointMismatch
from relaax.parameters.parameter_store import frozen_copy

#: A training has at most so many policies beside the default one.
MOST_POLICIES = 4096

#: Names are part of the names of a checkpoint's tensors.
_NAME = re.compile(r"[\w.:-]{1,64}")

#: The ends of these names: of the vector, and of its version and the learner's step.
_VECTOR, _COUNTS = "/parameters", "/counts"


class _Policy(NamedTuple):
    vector: FloatVector
    #: How often the vector has been replaced.
    version: int
    #: The learner's count of its steps at the last time.
    iteration: int


class Policies:
    """Vectors beside the default one's, by name, each replaced as a whole.

    Until a vector is pushed under a name, it is ``initial`` float32 [size], as version 0: an actor
    may begin with a policy before its learner does. Many threads may call it at once.
    """

    def __init__(self, initial: FloatVector) -> None:
        self._initial = _Policy(frozen_copy(initial), 0, -1)
        self._by_name: dict[str, _Policy] = {}
        self._lock = threading.Lock()

    def read(self, name: str) -> tuple[FloatVector, int]:
        """Return the vector float32 [size], read-only, and its version."""
        found = self._by_name.get(name, self._initial)
        return found.vector, found.version

    def replace(self, name: str, vector: FloatVector, iteration: int) -> int:
        """Replace the vector of a policy, and return its new version.

        ValueError for a name that is no name, for a policy too many, and for a vector of another
        size or with numbers that are not finite.
        """
        _require_name(name)
        require_replacement(vector, self._initial.vector, f" of policy {name!r}")
        with self._lock:
            if name not in self._by_name and len(self._by_name) >= MOST_POLICIES:
                raise ValueError(f"policy {name!r}: a training has {MOST_POLICIES} at most")
            version = self._by_name.get(name, self._initial).version + 1
            self._by_name[name] = _Policy(frozen_copy(vector), version, iteration)
            return version

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Return the tensors of a checkpoint by name."""
        with self._lock:
            policies = dict(self._by_name)
        return {
            f"{POLICIES}{name}{end}": array
            for name, policy in policies.items()
            for end, array in (
                (_VECTOR, policy.vector),
                (_COUNTS, np.array([policy.version, policy.iteration])),
            )
        }

    def restore(self, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from the tensors of a checkpoint, which may hold more; CheckpointMismatch."""
        found = {}
        for key, vector in tensors.items():
            if key.startswith(POLICIES) and key.endswith(_VECTOR):
                name = key.removeprefix(POLICIES).removesuffix(_VECTOR)
                counts = tensors.get(f"{POLICIES}{name}{_COUNTS}")
                if counts is None or counts.shape != (2,):
                    raise CheckpointMismatch(f"the counts of policy {name!r} are not in it")
                try:
                    require_replacement(vector, self._initial.vector, f" of policy {name!r}")
                except ValueError as error:
                    raise CheckpointMismatch(str(error)) from error
                version, iteration = counts.tolist()
                found[name] = _Policy(frozen_copy(vector), version, iteration)
        with self._lock:
            self._by_name = found


def _require_name(name: str) -> None:
    if name == DEFAULT or _NAME.fullmatch(name) is None:
        raise ValueError(
            f"policy {name!r}: a name has 1 to 64 letters, digits and characters of '_.:-'"
        )


def require_replacement(vector: FloatVector, before: FloatVector, whose: str = "") -> None:
    """Raise ValueError unless ``vector`` may replace the values ``before``: their size, and finite.

    ``whose`` names the policy in the message.
    """
    if vector.shape != before.shape:
        raise ValueError(
            f"the parameters{whose} have shape {vector.shape}, not {before.shape}: do the learner "
            "and the parameter server read one configuration?"
        )
    if not np.isfinite(vector).all():
        raise ValueError(f"the parameters{whose} are not finite")

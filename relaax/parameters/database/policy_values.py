"""The values of a version, as bytes and back."""

from dataclasses import dataclass, field

import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from relaax.algorithm_base import FloatVector
from relaax.errors import DamagedCheckpoint


def _no_statistics() -> FloatVector:
    return np.zeros(0, np.float32)


@dataclass(frozen=True)
class PolicyValues:
    """The values of a policy."""

    #: float32 [size]: the parameters.
    vector: FloatVector
    #: The environment steps behind them.
    global_t: int = 0
    #: float32 [statistics]: those of filters, where they are not the end of ``vector``.
    statistics: FloatVector = field(default_factory=_no_statistics)

    def to_bytes(self) -> bytes:
        """Return the same bytes for the same values; ValueError for arrays that are no vectors."""
        tensors = {"vector": self.vector, "statistics": self.statistics}
        for name, array in tensors.items():
            if array.dtype != np.float32 or array.ndim != 1:
                raise ValueError(
                    f"{name} must be float32 of one dimension, is {array.dtype} {array.shape}"
                )
        contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
        return safetensors.save({**contiguous, "global_t": np.array([self.global_t], np.int64)})

    @classmethod
    def from_bytes(cls, data: bytes) -> "PolicyValues":
        """Return the values of ``to_bytes``; DamagedCheckpoint for other bytes."""
        try:
            tensors = safetensors.load(data)
            return cls(tensors["vector"], int(tensors["global_t"][0]), tensors["statistics"])
        except (SafetensorError, KeyError, ValueError, IndexError) as error:
            raise DamagedCheckpoint(f"these are no values of a policy: {error}") from error


@dataclass(frozen=True)
class StoredVersion:
    """A version of a policy's values."""

    number: int
    values: PolicyValues
    #: When it was pushed: seconds since 1970, by the clock of its writer.
    pushed_at: float

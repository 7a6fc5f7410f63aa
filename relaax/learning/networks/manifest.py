"""Names, shapes and offsets of the tensors in a flat vector."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from relaax.errors import ConfigurationError

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class TensorSpec:
    """One tensor: its name and shape, and the inputs that feed one of its units."""

    name: str
    shape: tuple[int, ...]
    #: Number of inputs of one unit; sets the range of its initial values.
    fan_in: int
    #: The length of an orthogonal kernel's columns.
    gain: float = 1.0
    #: Where all its values start; None: where the initialization draws them.
    start: float | None = None

    @property
    def size(self) -> int:
        """Number of values."""
        return prod(self.shape)


@dataclass(frozen=True)
class ParameterManifest:
    """The tensors of a flat vector, in order."""

    specs: tuple[TensorSpec, ...]

    @cached_property
    def size(self) -> int:
        """Number of values in the vector."""
        return sum(spec.size for spec in self.specs)

    def unpack(self, vector: FloatArray) -> dict[str, FloatArray]:
        """Return views into ``vector`` [size] by name; ConfigurationError for another size."""
        if vector.shape != (self.size,):
            raise ConfigurationError(
                f"the network has {self.size} parameters, the vector {vector.shape}: do the "
                "parameter server and the RLX server read the same configuration?"
            )
        views, offset = {}, 0
        for spec in self.specs:
            views[spec.name] = vector[offset : offset + spec.size].reshape(spec.shape)
            offset += spec.size
        return views

    def pack(self, tensors: Mapping[str, FloatArray]) -> FloatArray:
        """Return the tensors as one vector [size]."""
        ordered: Iterable[FloatArray] = (tensors[spec.name].ravel() for spec in self.specs)
        return np.concatenate(list(ordered)).astype(np.float32, copy=False)

"""Names, shapes and offsets of the tensors in a flat vector."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import ConfigurationError

FloatArray = npt.NDArray[np.float32]


class NetworkParameters:
    """One flat vector, as numpy and as TensorFlow's graphs want it.

    ``arrays`` are views into the vector, by name. ``make_tensors`` is called when the tensors are
    first used: what chooses with numpy, and has not learnt yet, starts nothing of TensorFlow.
    """

    def __init__(
        self, arrays: Mapping[str, FloatArray], make_tensors: Callable[[], tuple[Any, ...]] = tuple
    ) -> None:
        self.arrays = arrays
        self._make_tensors = make_tensors

    @cached_property
    def tensors(self) -> tuple[Any, ...]:
        """TensorFlow tensors: the whole vector as one, or one for each array."""
        return self._make_tensors()


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

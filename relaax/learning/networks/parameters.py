"""The parameters of a network at one version."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


class Parameters:
    """One flat vector, as numpy and as TensorFlow's graphs want it.

    ``arrays`` are views into the vector, by name. ``make_tensors`` is called when the tensors are
    first used: what chooses with numpy, and has not learnt yet, starts nothing of TensorFlow.
    """

    def __init__(
        self,
        arrays: Mapping[str, FloatArray],
        make_tensors: Callable[[], tuple[Any, ...]] = tuple,
    ) -> None:
        self.arrays = arrays
        self._make_tensors = make_tensors

    @cached_property
    def tensors(self) -> tuple[Any, ...]:
        """TensorFlow tensors: the whole vector as one, or one for each array."""
        return self._make_tensors()

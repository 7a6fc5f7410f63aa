"""The parameters of a network at one version."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Parameters:
    """One flat vector, as numpy and as TensorFlow's graphs want it."""

    #: By name, views into the vector.
    arrays: Mapping[str, FloatArray]
    #: TensorFlow tensors: the whole vector as one, or one for each array.
    tensors: tuple[Any, ...]

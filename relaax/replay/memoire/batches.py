"""What is drawn, as Memoire's users have it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import RelaaxError
from relaax.replay.memoire.entry import NEXT, WEIGHT
from relaax.replay.table import Sample

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]
Weights = npt.NDArray[np.float32]
#: Fields and weights; with ``multi_step``, fields twice.
Batch = tuple[Fields, Weights] | tuple[Fields, Fields, Weights]


class MemoryClosed(RelaaxError):
    """The memory, or the client, was closed while something waited for it."""


def as_tuples(sample: Sample) -> Batch:
    """Return a sample as ``get_data`` does."""
    columns = dict(sample.columns)
    weights = columns.pop(WEIGHT)
    fields = tuple(array for name, array in columns.items() if not name.startswith(NEXT))
    later = tuple(array for name, array in columns.items() if name.startswith(NEXT))
    return (fields, later, weights) if later else (fields, weights)

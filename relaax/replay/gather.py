"""Rows of columns, read into memory that is given."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.errors import ConfigurationError

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]


class Empty(Protocol):
    """Makes room for arrays; ``numpy.empty`` is one."""

    def __call__(self, shape: tuple[int, ...], dtype: np.dtype[Any], /) -> Array:
        """Return an array of any content."""


def gather(column: Array, rows: IntArray, empty: Empty = np.empty) -> Array:
    """Return ``column[rows]``, [*rows.shape, ...], in memory of ``empty``; ``rows`` must exist."""
    out = empty((*rows.shape, *column.shape[1:]), column.dtype)
    # Other modes look at all rows first, and write to a copy.
    return np.take(column, rows, axis=0, out=out, mode="clip")


def joined_arrays(parts: Sequence[Array], axis: int, empty: Empty = np.empty) -> Array:
    """Return arrays, of one shape but for ``axis``, joined in memory from ``empty``.

    ConfigurationError for arrays of several types: bytes and floats have other meanings.
    """
    types = sorted({part.dtype.name for part in parts})
    if len(types) > 1:
        raise ConfigurationError(
            f"replay servers hold arrays {list(parts[0].shape[1:])} of {' and of '.join(types)}: "
            "let all environments of a training send one type, and begin with empty replays"
        )
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return np.concatenate(parts, axis, out=empty(tuple(shape), parts[0].dtype))

"""The columns of stored steps, and whether two ends agree about them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import ConfigurationError
from relaax.observations import NUMBERS

Array = npt.NDArray[Any]

#: Numbers whose type is open have so many bytes at most.
MOST_ITEM_BYTES = 8


@dataclass(frozen=True)
class Column:
    """The type and shape of one step's value."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...] = ()
    #: Whether the type is open: the first writer decides about it.
    is_open: bool = False

    def __post_init__(self) -> None:
        if self.dtype.kind not in NUMBERS:
            raise ConfigurationError(f"a column holds numbers or booleans, not {self.dtype}")

    @property
    def bytes(self) -> int:
        """The size of one step's value."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))

    def takes(self, other: "Column") -> bool:
        """Return whether values of ``other`` can be stored here as they are."""
        is_any = self.is_open and other.dtype.itemsize <= MOST_ITEM_BYTES
        return self.shape == other.shape and (is_any or self.dtype == other.dtype)

    def __str__(self) -> str:
        return f"{self.dtype.name} {list(self.shape)}"


class Schema:
    """Columns by name, in an order."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        if not columns:
            raise ConfigurationError("a step needs at least one column")
        self.columns = dict(columns)

    @property
    def bytes(self) -> int:
        """The size of one step."""
        return sum(column.bytes for column in self.columns.values())

    @property
    def is_open(self) -> bool:
        """Whether the type of any column is still open."""
        return any(column.is_open for column in self.columns.values())

    @property
    def most_bytes(self) -> int:
        """The size of one step where all types that are open are the largest."""
        return sum(
            max(column.bytes, MOST_ITEM_BYTES * math.prod(column.shape) * column.is_open)
            for column in self.columns.values()
        )

    def settled(self, types: Mapping[str, np.dtype[Any]]) -> "Schema":
        """Return the schema of steps of these types, by name; unknown types stay open."""
        return Schema(
            {
                name: Column(types[name], column.shape)
                if column.is_open and name in types
                else column
                for name, column in self.columns.items()
            }
        )

    def rows(self, count: int) -> dict[str, Array]:
        """Return room for ``count`` steps, of zeros: arrays [count, ...] by name."""
        return {
            name: np.zeros((count, *column.shape), column.dtype)
            for name, column in self.columns.items()
        }

    def differences(self, other: "Schema") -> list[str]:
        """Return the differences of ``other``, a line for each column."""
        wrong = []
        for name, column in self.columns.items():
            theirs = other.columns.get(name)
            if theirs is None:
                wrong.append(f"column {name!r} is missing")
            elif not column.takes(theirs):
                wrong.append(f"column {name!r} is {theirs}, and must be {column}")
        unknown = other.columns.keys() - self.columns.keys()
        return wrong + [f"column {name!r} is not known" for name in sorted(unknown)]

    def check(self, rows: Mapping[str, Array], count: int) -> None:
        """Raise ValueError, which names columns, unless ``rows`` are ``count`` steps of these."""
        if self._fits(rows, count):
            return
        given = {name: Column(array.dtype, array.shape[1:]) for name, array in rows.items()}
        wrong = self.differences(Schema(given))
        wrong += [
            f"column {name!r} has {_length(array)} steps, and must have {count}"
            for name, array in rows.items()
            if array.shape[:1] != (count,)
        ]
        if wrong:
            raise ValueError("; ".join(wrong))

    def _fits(self, rows: Mapping[str, Array], count: int) -> bool:
        return rows.keys() == self.columns.keys() and all(
            rows[name].shape == (count, *column.shape) and rows[name].dtype == column.dtype
            for name, column in self.columns.items()
        )


def _length(array: Array) -> int:
    return len(array) if array.ndim else 0

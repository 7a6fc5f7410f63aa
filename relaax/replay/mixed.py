"""Batches that are made of fixed parts of several tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import ConfigurationError
from relaax.replay.selectors import FloatArray, IntArray
from relaax.replay.storage import Empty
from relaax.replay.table import Sample, Table, TableCounts, TableState, joined

Array = npt.NDArray[Any]

#: The column with the table of each item: its place among the names, uint8 [N].
SOURCE = "source"


def in_words(fractions: Mapping[str, float]) -> str:
    """Return the parts of the batches."""
    return " and ".join(f"{fraction:g} of {name}" for name, fraction in fractions.items())


def parts_of(count: int, fractions: FloatArray) -> IntArray:
    """Divide ``count`` by ``fractions`` [N] of the sum 1, int64 [N]: the largest remainders up."""
    shares = fractions * count
    parts = np.floor(shares + 1e-9).astype(np.int64)
    remainders = np.argsort(parts - shares, kind="stable")
    parts[remainders[: count - int(parts.sum())]] += 1
    return parts


def mixed(
    samples: Sequence[Sample | None], axis: int, items: int, empty: Empty = np.empty
) -> Sample:
    """Return one batch of samples of N tables, None without any, with the column ``SOURCE``."""
    drawn = [sample for sample in samples if sample is not None]
    batch = joined(drawn, axis, items, empty)
    counts = [0 if sample is None else len(sample.keys) for sample in samples]
    source = np.repeat(np.arange(len(samples), dtype=np.uint8), counts)
    return replace(batch, columns={**batch.columns, SOURCE: source})


class Mixed:
    """Draws a part of each batch from each of several tables over one storage.

    tables: by name, all with one view. fractions: by the same names; ConfigurationError unless they
    are positive and their sum is 1. It has no items of its own, limits nothing, and takes no steps.
    """

    def __init__(self, tables: Mapping[str, Table], fractions: Mapping[str, float]) -> None:
        if not fractions or min(fractions.values()) <= 0 or abs(sum(fractions.values()) - 1) > 1e-6:
            raise ConfigurationError(
                f"the fractions of a mixed table must be positive, with a sum of 1; they are "
                f"{dict(fractions)}"
            )
        unknown = sorted(set(fractions) - set(tables))
        if unknown:
            raise ConfigurationError(f"a mixed table is made of {unknown[0]}, which is no table")
        self._tables = [tables[name] for name in fractions]
        self._fractions = np.array(list(fractions.values()))
        #: See Table.
        self.kind = in_words(fractions)
        self._drawn = 0

    def __len__(self) -> int:
        """Return how many items all tables have together."""
        return sum(len(table) for table in self._tables)

    @property
    def counts(self) -> TableCounts:
        """The drawn items; the tables count everything else."""
        return TableCounts(drawn=self._drawn)

    def holds_back(self, count: int, charge: int | None = None) -> str:
        """Return why a table may not be drawn its part from; "" if each may."""
        parts = self._parts(count, charge)
        whys = (table.holds_back(part, cost) for table, part, cost in parts if part)
        return next(filter(None, whys), "")

    def state(self) -> TableState:
        """See Table: the tables together, as far as each allows its part of a batch."""
        states = [table.state() for table in self._tables]
        allowed = [state.allowance for state in states] / self._fractions
        weight = len(self) if all(state.weight for state in states) else 0
        return TableState(len(self), weight, float(np.floor(allowed.min())))

    def let_go(self) -> None:
        """See Table: drawn items of all tables are not in use any more."""
        for table in self._tables:
            table.let_go()

    def draw(self, count: int, charge: int | None = None, *, empty: Empty = np.empty) -> Sample:
        """Draw ``count`` items, grouped by table; see Table."""
        samples = [
            table.draw(part, cost) if part else None
            for table, part, cost in self._parts(count, charge)
        ]
        self._drawn += count
        return mixed(samples, self._tables[0].item_axis, len(self), empty)

    def update_priorities(self, keys: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N] in the tables that have any; return how many are gone.

        ValueError if no table has priorities.
        """
        prioritized = [table for table in self._tables if table.has_priorities]
        if not prioritized:
            raise ValueError("the items of these tables have no priorities")
        return min(table.update_priorities(keys, priorities) for table in prioritized)

    def contents(self) -> dict[str, Array]:
        """See Table: the tables' own contents are apart."""
        return {"drawn": np.array([self._drawn])}

    def restore(self, contents: Mapping[str, Array]) -> None:
        """See Table."""
        self._drawn = int(contents["drawn"][0])

    def _parts(self, count: int, charge: int | None) -> Iterator[tuple[Table, int, int]]:
        """Yield the tables, how many of ``count`` items come from each, and their price."""
        parts = parts_of(count, self._fractions)
        costs = parts if charge is None else parts_of(charge, self._fractions)
        return zip(self._tables, parts.tolist(), costs.tolist(), strict=True)

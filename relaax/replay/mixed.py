"""Batches that are made of fixed parts of several tables."""

from collections.abc import Mapping

import numpy as np

from relaax.errors import ConfigurationError
from relaax.replay.gather import Empty, joined
from relaax.replay.selectors.selector import FloatArray, IntArray
from relaax.replay.table import Sample, Table, TableCounts

#: The column that says which table an item is of: its place among the names, uint8 [N].
SOURCE = "source"


class Mixed:
    """Draws a part of each batch from each of several tables over one storage.

    tables: by name, all with one view. fractions: by the same names; ConfigurationError unless they
    are positive and their sum is 1. It has no items of its own and limits nothing.
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
        self._drawn = 0

    def __len__(self) -> int:
        """Return how many items all tables have together."""
        return sum(len(table) for table in self._tables)

    @property
    def counts(self) -> TableCounts:
        """What was drawn; all else is counted by the tables."""
        return TableCounts(drawn=self._drawn)

    def may_insert(self, count: int) -> bool:
        """See Table: the tables decide."""
        return True

    def may_draw(self, count: int) -> bool:
        """Return whether each table may be drawn its part from."""
        parts = zip(self._tables, self._parts(count), strict=True)
        return all(table.may_draw(part) for table, part in parts if part)

    def let_go(self) -> None:
        """See Table: what all tables have handed out is not worked on any more."""
        for table in self._tables:
            table.let_go()

    def appended(self, slot: int, rows: IntArray) -> None:
        """See Table: the tables take them up."""

    def draw(self, count: int, *, empty: Empty = np.empty) -> Sample:
        """Draw ``count`` items, those of each table together; see Table."""
        parts = self._parts(count)
        samples = [
            table.draw(part) for table, part in zip(self._tables, parts, strict=True) if part
        ]
        self._drawn += count
        names = samples[0].columns
        columns = {
            name: joined([sample.columns[name] for sample in samples], empty) for name in names
        }
        columns[SOURCE] = np.repeat(np.arange(len(parts), dtype=np.uint8), parts)
        return Sample(
            keys=np.concatenate([sample.keys for sample in samples]),
            probabilities=np.concatenate([sample.probabilities for sample in samples]),
            columns=columns,
            items=len(self),
            least_probability=min(sample.least_probability for sample in samples),
        )

    def update_priorities(self, keys: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N] in the tables that have any; return how many are gone.

        ValueError if no table has priorities.
        """
        prioritized = [table for table in self._tables if table.has_priorities]
        if not prioritized:
            raise ValueError("the items of these tables have no priorities")
        return min(table.update_priorities(keys, priorities) for table in prioritized)

    def _parts(self, count: int) -> IntArray:
        """Return how many of ``count`` items come from each table, the largest remainders up."""
        shares = self._fractions * count
        parts = np.floor(shares + 1e-9).astype(np.int64)
        remainders = np.argsort(parts - shares, kind="stable")
        parts[remainders[: count - int(parts.sum())]] += 1
        return parts

"""Batches that are made of fixed parts of several tables."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import Generic, Protocol, TypeVar

import numpy as np

from relaax.replay.selectors import FloatArray, IntArray
from relaax.replay.table import Sample, joined

Batch = TypeVar("Batch")

#: The column with the table of each item: its place among the names, uint8 [N].
SOURCE = "source"


class Unfinished(Generic[Batch]):
    """Keeps drawn parts for later batches. For several threads."""

    def __init__(self, begin: Callable[[int], Batch]) -> None:
        self._begin = begin
        self._batches: deque[Batch] = deque()

    @contextmanager
    def resumed(self, count: int) -> Iterator[Batch]:
        """Yield the oldest batch, or a new one of ``count`` items; keep it if that raises."""
        try:
            batch = self._batches.popleft()
        except IndexError:
            batch = self._begin(count)
        try:
            yield batch
        except BaseException:
            self._batches.append(batch)
            raise


class Source(Protocol):
    """Draws items of tables: a replay, or a sampler of a table of several replay servers."""

    def sample(self, table: str, count: int, timeout_s: float, /) -> Sample:
        """Draw ``count`` items; NotReady if that is not possible within ``timeout_s``."""
        ...

    def update_priorities(self, table: str, keys: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N]; return how many of them are gone."""
        ...


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


class Mixed:
    """Draws a part of each batch from each of several tables, and keeps drawn parts until all are.

    ``sources`` have the tables, by name; ``axis`` of their columns counts the items. Tables of
    ``prioritized`` have priorities. For several threads.
    """

    def __init__(
        self,
        fractions: Mapping[str, float],
        sources: Mapping[str, Source],
        prioritized: Collection[str],
        axis: int,
    ) -> None:
        self._names = list(fractions)
        self._fractions = np.array(list(fractions.values()))
        self._sources = sources
        self._prioritized = [name for name in self._names if name in prioritized]
        self._axis = axis
        self._unfinished: Unfinished[dict[str, Sample]] = Unfinished(lambda count: {})

    def sample(self, count: int, timeout_s: float) -> Sample:
        """Draw ``count`` items, grouped by table, with the column ``SOURCE``; see ``Source``."""
        deadline = monotonic() + timeout_s
        with self._unfinished.resumed(count) as drawn:
            parts = parts_of(count, self._fractions).tolist()
            for name, part in zip(self._names, parts, strict=True):
                if part and name not in drawn:
                    left = max(0.0, deadline - monotonic())
                    drawn[name] = self._sources[name].sample(name, part, left)
        samples = [(place, drawn[name]) for place, name in enumerate(self._names) if name in drawn]
        batch = joined([s for _, s in samples], self._axis, sum(s.items for _, s in samples))
        places = np.array([place for place, _ in samples], np.uint8)
        source = np.repeat(places, [len(sample.keys) for _, sample in samples])
        return replace(batch, columns={**batch.columns, SOURCE: source})

    def update_priorities(self, keys: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N] in the tables that have any; return how many are gone.

        ValueError if no table has priorities.
        """
        if not self._prioritized:
            raise ValueError("the items of these tables have no priorities")
        return min(
            self._sources[name].update_priorities(name, keys, priorities)
            for name in self._prioritized
        )

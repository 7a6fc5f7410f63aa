"""Batches that are made of fixed parts of several tables."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from relaax.replay.selectors import FloatArray, IntArray
from relaax.replay.specs import MixedSpec, ReplaySpec
from relaax.replay.table import Sample, joined

Batch = TypeVar("Batch")

#: The column with the table of each item: its place among the names, uint8 [N].
SOURCE = "source"


class Unfinished(Generic[Batch]):
    """Keeps drawn parts for later batches of the same size. For several threads."""

    def __init__(self, begin: Callable[[int], Batch]) -> None:
        self._begin = begin
        self._batches: defaultdict[int, deque[Batch]] = defaultdict(deque)

    @contextmanager
    def resumed(self, count: int) -> Iterator[Batch]:
        """Yield the oldest batch of ``count`` items, or a new one; keep it if that raises."""
        batches = self._batches[count]
        try:
            batch = batches.popleft()
        except IndexError:
            batch = self._begin(count)
        try:
            yield batch
        except BaseException:
            batches.append(batch)
            raise


class SampleSource(Protocol):
    """Draws items of tables: a replay, or a sampler of a table of several replay servers."""

    def sample(self, table: str, count: int, timeout_s: float, /) -> Sample:
        """Draw ``count`` items; NotReady if that is not possible within ``timeout_s``."""
        ...

    def update_priorities(self, table: str, keys: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N]; return how many of them are gone."""
        ...


@runtime_checkable
class PacedSource(Protocol):
    """A ``SampleSource`` whose tables may keep acting near learning; see ``Pacing``."""

    def at_version(self, table: str, version: int) -> None:
        """Note which parameters the next batch of ``table`` is learnt from with."""
        ...


def parts_of(count: int, fractions: FloatArray) -> IntArray:
    """Divide ``count`` by ``fractions`` [N] of the sum 1, int64 [N]: the largest remainders up."""
    shares = fractions * count
    parts = np.floor(shares + 1e-9).astype(np.int64)
    remainders = np.argsort(parts - shares, kind="stable")
    parts[remainders[: count - int(parts.sum())]] += 1
    return parts


class Sources:
    """Draws from the tables of ``spec``, mixed ones among them, whose drawn parts it keeps.

    ``sources`` have the tables with items of their own, by name; see ``SampleSource``. For several
    threads.
    """

    def __init__(self, spec: ReplaySpec, sources: Mapping[str, SampleSource]) -> None:
        self._spec = spec
        self._sources = sources
        self._unfinished: dict[str, Unfinished[dict[str, Sample]]] = {
            table: Unfinished(lambda count: {}) for table in spec.tables
        }

    def sample(self, table: str, count: int, timeout_s: float, /) -> Sample:
        """Draw ``count`` items: of a mixed table grouped by table, with the column ``SOURCE``.

        NotReady if that is not possible within ``timeout_s``.
        """
        of = self._spec.tables[table]
        if not isinstance(of, MixedSpec):
            return self._sources[table].sample(table, count, timeout_s)
        deadline = monotonic() + timeout_s
        parts = parts_of(count, np.array(list(of.fractions.values()))).tolist()
        with self._unfinished[table].resumed(count) as drawn:
            for name, part in zip(of.fractions, parts, strict=True):
                if part and name not in drawn:
                    left = max(0.0, deadline - monotonic())
                    drawn[name] = self._sources[name].sample(name, part, left)
        samples = [(place, drawn[name]) for place, name in enumerate(of.fractions) if name in drawn]
        axis, items = self._spec.view(table).item_axis, sum(each.items for _, each in samples)
        batch = joined([each for _, each in samples], axis, items)
        places = np.array([place for place, _ in samples], np.uint8)
        source = np.repeat(places, [len(each.keys) for _, each in samples])
        return replace(batch, columns={**batch.columns, SOURCE: source})

    def at_version(self, table: str, version: int) -> None:
        """See PacedSource."""
        for name in self._spec.parts(table):
            source = self._sources[name]
            if isinstance(source, PacedSource):
                source.at_version(name, version)

    def update_priorities(self, table: str, keys: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N]; return how many of them are gone.

        Of a mixed table in those of its tables that have any; ValueError without one.
        """
        names, own = self._spec.parts(table), self._spec.own_tables
        if table not in own:
            names = [each for each in names if own[each].selector == "prioritized"]
        if not names:
            raise ValueError("the items of these tables have no priorities")
        return min(self._sources[each].update_priorities(each, keys, priorities) for each in names)

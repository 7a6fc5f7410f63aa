"""The configuration of an algorithm's storage and tables."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Any, Literal, TypeAlias

import numpy as np

from relaax.errors import ConfigurationError
from relaax.replay.limiter import Limiter
from relaax.replay.pacing import PacedTable
from relaax.replay.removers import RemoverName
from relaax.replay.replay import Replay
from relaax.replay.schema import Schema
from relaax.replay.selectors import Balanced, Prioritized, Queue, Selector, Uniform
from relaax.replay.storage import BYTES_PER_ROW, Storage
from relaax.replay.table import PIECES, Table
from relaax.replay.views import View
from relaax.replay.writers import Writers

#: Steps of a writer that wait to be sent, where no table has a bound for them.
MOST_WAITING = 256

#: Steps that a writer sends in one message at most, but for the last batch in it.
MOST_STEPS_AT_ONCE = 4096

#: Bytes of a row in a table at most: its place, or its priority and the sums of priorities.
BYTES_PER_ITEM = 40

SelectorName: TypeAlias = Literal["uniform", "balanced", "prioritized", "fifo", "lifo"]


@dataclass(frozen=True)
class TableSpec:
    """A table: its items, how they are drawn, and when.

    ConfigurationError for an ``alpha`` or a ``max_times_sampled`` that draws nothing.
    """

    view: View
    selector: SelectorName = "uniform"
    limiter: Limiter = field(default_factory=Limiter)
    #: Of ``balanced``: the column of a number, by whose rows that are not 0 half of the items are
    #: drawn, and half by others.
    balances: str = "reward"
    #: Of ``prioritized``: P(i) is proportional to the priority to this power.
    alpha: float = 0.6
    #: After so many draws an item is removed; None keeps it.
    max_times_sampled: int | None = None
    #: Whether drawn items count as present until the next draw.
    holds_drawn: bool = False
    #: Whether the steps of items that were not drawn are kept, however many others come.
    keeps_undrawn: bool = False
    #: The items that leave a table with more than the limiter's ``max_items``; None: writers wait
    #: instead.
    remover: RemoverName | None = None
    #: How many versions a rollout may be older than the parameters that learn from it: it is begun
    #: when it is admitted. None: rollouts are begun at any time.
    staleness: int | None = None
    #: Makes the table: ``Table``, or a class derived from it.
    table: Callable[..., Table] = Table

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise ConfigurationError(f"alpha must be finite, and at least 0, is {self.alpha}")
        if self.max_times_sampled is not None and self.max_times_sampled < 1:
            raise ConfigurationError(
                f"max_times_sampled must be at least 1, is {self.max_times_sampled}"
            )

    @property
    def kind(self) -> str:
        """Items and draws in words."""
        leaves = "" if self.remover is None else f", {self.remover} removed"
        return f"{self.view}, {self.selector}{leaves}"

    def share(self, of: int) -> "TableSpec":
        """Return the part of one of ``of`` servers; ConfigurationError where one counts all."""
        if self.staleness is not None and of > 1:
            raise ConfigurationError(
                f"max_staleness counts the rollouts at one server, and not at {of}"
            )
        return replace(self, limiter=self.limiter.share(of))


@dataclass(frozen=True)
class MixedSpec:
    """A table whose batches are made of fixed parts of others, which all have one view.

    ConfigurationError unless the fractions are positive, with a sum of 1.
    """

    #: How much of a batch comes from which table.
    fractions: Mapping[str, float]

    def __post_init__(self) -> None:
        parts = self.fractions.values()
        if not parts or min(parts) <= 0 or abs(sum(parts) - 1) > 1e-6:
            raise ConfigurationError(
                f"the fractions of a mixed table must be positive, with a sum of 1; they are "
                f"{dict(self.fractions)}"
            )

    @property
    def kind(self) -> str:
        """The parts of batches in words."""
        return " and ".join(f"{part:g} of {name}" for name, part in self.fractions.items())

    def share(self, of: int) -> "MixedSpec":
        """Return the part of one of ``of`` servers: the same."""
        return self


@dataclass(frozen=True)
class ReplaySpec:
    """A storage and its tables.

    ConfigurationError where one is mixed of others than these, or balanced by no column of it.
    """

    schema: Schema
    #: How many steps are stored.
    capacity: int
    tables: Mapping[str, TableSpec | MixedSpec]
    #: Further values that saved contents must agree with, as JSON: their units.
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    #: Into so many parts the capacity is divided, each for some of the slots; see ``Storage``.
    rings: int = 1

    def __post_init__(self) -> None:
        parts = {name for table in self.tables for name in self.parts(table)}
        if unknown := sorted(parts - self.own_tables.keys()):
            raise ConfigurationError(f"a mixed table is made of {unknown[0]}, which is no table")
        for name, table in self.own_tables.items():
            column = self.schema.columns.get(table.balances)
            if table.selector == "balanced" and (column is None or column.shape):
                raise ConfigurationError(
                    f"table {name} is balanced by {table.balances}, which is no column of a number"
                )

    @property
    def own_tables(self) -> dict[str, TableSpec]:
        """The tables that have items of their own, by name."""
        return {name: spec for name, spec in self.tables.items() if isinstance(spec, TableSpec)}

    def share(self, of: int) -> "ReplaySpec":
        """Return the part of one of ``of`` servers with equal shares."""
        tables = {name: spec.share(of) for name, spec in self.tables.items()}
        return replace(self, capacity=-(-self.capacity // of), tables=tables)

    @property
    def bytes(self) -> int:
        """The memory of all steps, with the known facts of each beside its columns."""
        of_tables = BYTES_PER_ITEM * len(self.tables)
        return self.capacity * (self.schema.bytes + BYTES_PER_ROW + of_tables)

    @property
    def most_waiting(self) -> int:
        """How many steps of a writer may wait to be sent: actions ahead of the learner.

        If a table keeps acting near learning, half of the steps between two looks at its bound.
        """
        bounds = [
            spec.view.stride * max(1, spec.limiter.max_items // PIECES) // 2
            for spec in self.own_tables.values()
            if spec.keeps_undrawn and spec.limiter.max_items
        ]
        return max(1, min([MOST_WAITING, *bounds]))

    @property
    def paced_rollout(self) -> int | None:
        """The steps of a rollout that is begun when it is admitted; None where none is."""
        paced = (spec for spec in self.own_tables.values() if spec.staleness is not None)
        return next((spec.view.stride for spec in paced), None)

    def view(self, table: str) -> View:
        """Return how items of ``table`` are read."""
        return self.own_tables[self.parts(table)[0]].view

    def parts(self, table: str) -> list[str]:
        """Return the tables whose items are drawn where ``table`` is asked for."""
        spec = self.tables[table]
        return list(spec.fractions) if isinstance(spec, MixedSpec) else [table]

    def make(
        self,
        random: np.random.Generator,
        lease_s: float,
        clock: Callable[[], float] = monotonic,
        writers: Writers | None = None,
    ) -> Replay:
        """Return an empty replay that forgets writers after ``lease_s`` of silence.

        ``writers`` are given where they follow other rules.
        """
        storage = Storage(self.schema, self.capacity, self.rings)
        tables = {
            name: _maker(spec)(
                storage,
                spec.view,
                _selector(spec, storage, random.spawn(1)[0]),
                spec.limiter,
                spec.max_times_sampled,
                spec.kind,
                spec.holds_drawn,
                spec.remover,
                spec.keeps_undrawn,
            )
            for name, spec in self.own_tables.items()
        }
        if writers is None:
            writers = Writers(lease_s, clock=clock)
        return Replay(storage, tables, writers)


def _maker(spec: TableSpec) -> Callable[..., Table]:
    if spec.staleness is None:
        return spec.table
    return partial(PacedTable, staleness=spec.staleness, batch=spec.limiter.min_items)


def _selector(spec: TableSpec, storage: Storage, random: np.random.Generator) -> Selector:
    capacity = storage.capacity
    match spec.selector:
        case "uniform":
            return Uniform(capacity, random)
        case "balanced":
            return Balanced(
                capacity, lambda rows: storage.columns[spec.balances][rows] != 0, random
            )
        case "prioritized":
            return Prioritized(capacity, spec.alpha, random)
        case "fifo" | "lifo":
            return Queue(is_newest_first=spec.selector == "lifo")

"""What an algorithm stores and draws, as it is configured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from relaax.replay.limiter import Limiter
from relaax.replay.mixed import Mixed
from relaax.replay.replay import Replay
from relaax.replay.schema import Schema
from relaax.replay.selectors.prioritized import Prioritized
from relaax.replay.selectors.queue import Queue
from relaax.replay.selectors.selector import Selector
from relaax.replay.selectors.uniform import Uniform
from relaax.replay.storage import Storage
from relaax.replay.table import Table
from relaax.replay.views import View
from relaax.replay.writers import Writers

SelectorName: TypeAlias = Literal["uniform", "prioritized", "fifo", "lifo"]


@dataclass(frozen=True)
class TableSpec:
    """A table: what an item is, how items are drawn, and when."""

    view: View
    selector: SelectorName = "uniform"
    limiter: Limiter = field(default_factory=Limiter)
    #: Of ``prioritized``: P(i) is proportional to the priority to this power.
    alpha: float = 0.6
    #: After so many draws an item is removed; None keeps it.
    max_times_sampled: int | None = None
    #: Makes the table: ``Table``, or what is derived from it.
    table: Callable[..., Table] = Table


@dataclass(frozen=True)
class MixedSpec:
    """A table whose batches are made of fixed parts of others, which all have one view."""

    #: How much of a batch comes from which table; the sum is 1.
    fractions: Mapping[str, float]


@dataclass(frozen=True)
class ReplaySpec:
    """A storage and its tables."""

    schema: Schema
    #: How many steps are stored.
    capacity: int
    tables: Mapping[str, TableSpec | MixedSpec]

    def make(self, random: np.random.Generator, lease_s: float) -> Replay:
        """Return an empty replay, whose writers are forgotten after ``lease_s`` of silence."""
        storage = Storage(self.schema, self.capacity)
        tables = {
            name: spec.table(
                storage,
                spec.view,
                _selector(spec, storage.capacity, random.spawn(1)[0]),
                spec.limiter,
                spec.max_times_sampled,
            )
            for name, spec in self.tables.items()
            if isinstance(spec, TableSpec)
        }
        mixed = {
            name: Mixed(tables, spec.fractions)
            for name, spec in self.tables.items()
            if isinstance(spec, MixedSpec)
        }
        return Replay(storage, {**tables, **mixed}, Writers(lease_s))


def _selector(spec: TableSpec, capacity: int, random: np.random.Generator) -> Selector:
    match spec.selector:
        case "uniform":
            return Uniform(capacity, random)
        case "prioritized":
            return Prioritized(capacity, spec.alpha, random)
        case "fifo" | "lifo":
            return Queue(capacity, is_newest_first=spec.selector == "lifo")

"""What the gRPC service of experience calls."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.replay.gather import Empty
from relaax.replay.replay import ReplayState
from relaax.replay.schema import Schema
from relaax.replay.selectors.selector import FloatArray, IntArray
from relaax.replay.storage import Flags
from relaax.replay.table import Sample

Array = npt.NDArray[Any]


class ServedReplay(Protocol):
    """Steps that are written and drawn by many threads; ``Replay`` says what each method does."""

    @property
    def schema(self) -> Schema:
        """What a step is."""
        ...

    def table_kinds(self) -> dict[str, str]:
        """Return what the items of each table are and how they are drawn, in words."""
        ...

    def table_sizes(self) -> dict[str, int]:
        """Return how many items each table has."""
        ...

    def open_writer(self, name: str, schema: Schema) -> list[str]:
        """Let ``name`` write steps of ``schema``; return in which columns it is another one."""
        ...

    def close_writer(self, name: str) -> None:
        """Let no more be written by ``name``."""
        ...

    def append(
        self,
        writer: str,
        environment: int,
        first: int,
        rows: Mapping[str, Array],
        flags: Flags,
        timeout_s: float = 0.0,
    ) -> int:
        """Store steps [N, ...]; return the number of the step that must come next."""
        ...

    def sample(
        self,
        table: str,
        count: int,
        timeout_s: float,
        charge: int | None = None,
        *,
        empty: Empty = np.empty,
    ) -> Sample:
        """Draw items; the ratio counts ``charge`` draws, if given; see Replay."""
        ...

    def watch(self, table: str, at_least: float, timeout_s: float) -> ReplayState:
        """Wait until so many items may be drawn, and say how a table is."""
        ...

    def update_priorities(self, table: str, keys: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N]; return how many of them are gone."""
        ...

    def stats(self) -> dict[str, float]:
        """Return counts by name."""
        ...

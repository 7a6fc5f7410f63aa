"""A memory as the gRPC service of experience calls it."""

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.gather import Empty
from relaax.replay.memoire.clients import ClientSlots
from relaax.replay.memoire.entry import LAST, QVEST, WEIGHT, MemoryClosed
from relaax.replay.memoire.memory import ReplayMemory
from relaax.replay.replay import NotReady, ReplayState
from relaax.replay.schema import Schema
from relaax.replay.selectors.selector import FloatArray, IntArray
from relaax.replay.storage import FINAL, START, TERMINATED, Flags
from relaax.replay.table import Sample, TableState
from relaax.replay.wire import require_finite
from relaax.replay.writers import MissingSteps

Array = npt.NDArray[Any]

#: The name of the only table.
TABLE = "memory"

#: What priorities and returns are made of: NaN would spread from one entry to those of others.
_FINITE = (*LAST, QVEST, WEIGHT, "probability")


class ServedMemory:
    """Entries of numbered clients, each stored once and in order; for many threads."""

    def __init__(self, memory: ReplayMemory, lease_s: float) -> None:
        self._memory = memory
        self._clients = ClientSlots(memory.num_slot, lease_s)
        self._lock = threading.Lock()
        self._duplicates = 0

    @property
    def schema(self) -> Schema:
        """What an entry is."""
        return self._memory.schema

    def table_sizes(self) -> dict[str, int]:
        """Return how many entries there are."""
        return {TABLE: len(self._memory)}

    def table_kinds(self) -> dict[str, str]:
        """Return what is drawn, in words."""
        return {TABLE: "rollouts of Memoire, by their errors"}

    def slot_of(self, name: str) -> int:
        """Return the slot of a client, a new one for a new client; NoFreeSlot, ValueError."""
        with self._lock:
            slot, is_new = self._clients.open(name)
            if is_new:
                self._memory.end_episode(slot)
            return slot

    def open_writer(self, name: str, schema: Schema) -> list[str]:
        """Let ``name`` write entries of ``schema``; return in which fields they are others."""
        differences = self.schema.differences(schema)
        if not differences:
            self.slot_of(name)
        return differences

    def close_writer(self, name: str) -> None:
        """Let the slot of a client be given to others; its entries stay until then."""
        with self._lock:
            slot = self._clients.close(name)
            if slot is not None:
                self._memory.end_episode(slot)

    def append(
        self,
        writer: str,
        environment: int,
        first: int,
        rows: Mapping[str, Array],
        flags: Flags,
        timeout_s: float = 0.0,
    ) -> int:
        """Store entries [N, ...] of a client; ``first`` is the number of the first of them.

        Return the number of the entry that must come next. UnknownWriter, MissingSteps; ValueError
        for other entries, and for another environment than 0.
        """
        if environment != 0:
            raise ValueError(f"a client's only environment is number 0, not {environment}")
        if (flags & FINAL).any():
            raise ValueError("an entry is an action: there is none of a state without one")
        with self._lock:
            index, slot = self._clients.find(writer)
            known = slot.next_step - first
            if known < 0:
                raise MissingSteps(f"entry {slot.next_step} must come next, not {first}")
            new = slice(min(known, len(flags)), None)
            self._duplicates += new.start
            self._push(index, {name: rows[name][new] for name in rows}, flags[new])
            slot.next_step = max(slot.next_step, first + len(flags))
            return slot.next_step

    def put_cache(self, writer: str, sample: Sample, total: float) -> None:
        """Take what a client has drawn of its own memory; UnknownWriter, ValueError."""
        require_finite({**sample.columns, "probability": sample.probabilities}, _FINITE)
        with self._lock:
            slot, _ = self._clients.find(writer)
            self._memory.put_cache(slot, sample, total)

    def sample(
        self,
        table: str,
        count: int,
        timeout_s: float,
        charge: int | None = None,
        *,
        empty: Empty = np.empty,
    ) -> Sample:
        """Draw entries, which lie in memory of their own; NotReady."""
        try:
            return self._memory.sample(count, timeout_s)
        except MemoryClosed as error:  # a server that starts again may have some
            raise NotReady(str(error)) from error

    def watch(self, table: str, at_least: float, timeout_s: float) -> ReplayState:
        """Say how many entries there are, and their weight, without waiting."""
        memory = self._memory
        state = TableState(len(memory), memory.total_weight, np.inf if len(memory) else 0.0)
        return ReplayState(state, len(memory), memory.total_steps)

    def update_priorities(self, table: str, keys: IntArray, priorities: FloatArray) -> int:
        """Raise ValueError: weights are those of the errors, which the memory finds itself."""
        raise ValueError("the memory finds the weights of its entries itself")

    def stats(self) -> dict[str, float]:
        """Return counts by name."""
        with self._lock:
            return {
                "steps": len(self._memory),
                "steps stored": self._memory.total_steps,
                "steps twice": self._duplicates,
                "episodes": self._memory.total_episodes,
                "writers": len(self._clients),
            }

    def _push(self, slot: int, rows: Mapping[str, Array], flags: Flags) -> None:
        """Store entries; an episode that begins before the one before it has ended cuts that."""
        begin = 0
        for end in (*np.flatnonzero(flags & START).tolist(), len(flags)):
            if end > begin:
                part = slice(begin, end)
                terms = (flags[part] & TERMINATED).astype(np.bool_)
                self._memory.push(slot, {name: rows[name][part] for name in rows}, terms)
            if end < len(flags):
                self._memory.end_episode(slot)
            begin = end

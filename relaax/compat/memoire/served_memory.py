"""A memory as the gRPC service of experience calls it."""

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.compat.memoire.entry import LAST, QVEST, WEIGHT, MemoryClosed
from relaax.compat.memoire.memory import ReplayMemory
from relaax.replay.gather import Empty
from relaax.replay.replay import NotReady, ReplayState
from relaax.replay.schema import Schema
from relaax.replay.selectors.selector import FloatArray, IntArray
from relaax.replay.storage import FINAL, START, TERMINATED, Flags
from relaax.replay.table import Sample, TableState
from relaax.replay.wire import require_finite
from relaax.replay.writers import MissingSteps, NoFreeSlot, Slot, Writers

#: Clients that lost their slot to a newer one of the same name, and that are remembered as such.
MOST_REPLACED = 1024

#: The name of the only table.
TABLE = "memory"

#: What priorities and returns are made of: NaN would spread from one entry to those of others.
_FINITE = (*LAST, QVEST, WEIGHT, "probability")


class ClientSlots:
    """``count`` slots. A client keeps its own while it is heard of, and for ``lease_s`` afterwards.

    A writer is named ``uuid/token``. The next client with the same uuid has the same slot; the one
    before it, if it still runs, may write no more. The slot that became free first is given to
    others first.
    """

    def __init__(self, count: int, lease_s: float) -> None:
        self._writers = Writers(lease_s, most_expired=0)  # their slots are given to others
        self.lease_s = lease_s
        self._uuids: list[str | None] = [None] * count
        #: By slot: who writes there now.
        self._names: list[str | None] = [None] * count
        self._free = deque(range(count))
        self._slots: dict[int, int] = {}
        self._replaced: deque[str] = deque(maxlen=MOST_REPLACED)

    def __len__(self) -> int:
        """Return how many clients have a slot."""
        return len(self._uuids) - len(self._free)

    def open(self, name: str) -> tuple[int, bool]:
        """Return the slot of a writer, and whether it is new there.

        NoFreeSlot; ValueError if a newer client of the same name has it.
        """
        if not _uuid(name):
            raise ValueError("a client needs a name")
        if name in self._replaced:
            raise ValueError(f"another client with the uuid {_uuid(name)!r} has taken its slot")
        is_new = name not in self._names
        if is_new:
            index = self._index_for(_uuid(name))
            self._names[index], self._uuids[index] = name, _uuid(name)
            self._writers.open(name)
            self._slots[self._writers.slot(name, 0).number] = index
        else:
            self._writers.open(name)
        return self._names.index(name), is_new

    def find(self, name: str) -> tuple[int, Slot]:
        """Return the slot of a writer and which of its entries comes next; UnknownWriter."""
        slot = self._writers.slot(name, 0)
        return self._slots[slot.number], slot

    def hear(self, name: str) -> None:
        """Take note that a client is connected; UnknownWriter."""
        self._writers.hear(name)

    def close(self, name: str) -> int | None:
        """Let the slot of a writer be given to others; return it, if there is such a writer."""
        released = self._release(self._writers.close(name))
        return released[0] if released else None

    def _index_for(self, uuid: str) -> int:
        if uuid in self._uuids:
            index = self._uuids.index(uuid)
            before = self._names[index]
            if before is not None:
                self._replaced.append(before)
                self.close(before)
            self._free.remove(index)
            return index
        if not self._free:
            self._release(self._writers.expired())
        if not self._free:
            raise NoFreeSlot(
                f"all {len(self._uuids)} slots are taken; one becomes free when its client is "
                f"closed, or is not heard of for {self.lease_s:g} s"
            )
        return self._free.popleft()

    def _release(self, slots: list[Slot]) -> list[int]:
        indices = [self._slots.pop(slot.number) for slot in slots]
        for index in indices:
            self._names[index] = None
            self._free.append(index)
        return indices


def _uuid(name: str) -> str:
    uuid, slash, token = name.rpartition("/")
    return uuid if slash else token


Array = npt.NDArray[Any]


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

    def schema_of(self, writer: str) -> Schema:
        """Return what an entry is, of all writers alike."""
        return self.schema

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

    @property
    def lease_s(self) -> float:
        """How often a client must be heard of, so that it keeps its slot."""
        return self._clients.lease_s

    def hear_writer(self, name: str) -> None:
        """Take note that a client is connected; UnknownWriter."""
        with self._lock:
            self._clients.hear(name)

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

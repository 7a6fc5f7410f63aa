"""Writers, their slots, and the number of each slot's next step."""

import json
import logging
from bisect import bisect_right
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from time import monotonic

import numpy as np
import numpy.typing as npt

from relaax.errors import RelaaxError
from relaax.replay.table import Table

Bytes = npt.NDArray[np.uint8]

_log = logging.getLogger(__name__)

#: The log reports environments without a place at this interval.
SAY_EVERY_S = 60.0

#: Writers whose lease is over, and whose numbers are remembered.
MOST_EXPIRED = 1024


class UnknownWriter(RelaaxError):
    """The writer has not been opened, or was forgotten."""


class MissingSteps(RelaaxError):
    """Steps came before others that must be stored first."""


class NoFreeSlot(RelaaxError):
    """Other writers have all slots; one becomes free when a writer ends or is silent."""


@dataclass
class Slot:
    """One environment of a writer."""

    #: The storage's number of it, which is never given to another one.
    number: int
    #: How many steps have been stored: the number of the next one.
    next_step: int = 0
    #: Whether steps may be missing before the next ones: they were lost with a replay server.
    may_have_gap: bool = False
    #: Whether its steps are stored, and until when it waits for that; see ``Places``.
    has_place: bool = False
    waits_until: float | None = None


@dataclass
class _Writer:
    slots: dict[int, Slot] = field(default_factory=dict)
    seen: float = 0.0
    #: Whether it has written to a replay server before that started again.
    was_restored: bool = False

    def contents(self) -> list[list[int]]:
        """Return [environment, number, next step] of each slot."""
        return [[environment, s.number, s.next_step] for environment, s in self.slots.items()]

    @classmethod
    def restored(cls, contents: list[list[int]]) -> "_Writer":
        """Return the writer of ``contents``, whose next steps may be lost."""
        slots = {
            environment: Slot(number, next_step, may_have_gap=True, has_place=True)
            for environment, number, next_step in contents
        }
        return cls(slots, was_restored=True)


def label_of(writer: str, environment: int) -> str:
    """Return the name of an environment for operators: its process and its number there.

    A writer's name may end in a comma and a part that makes it unique, which is left out.
    """
    return f"environment {environment} of {writer.rpartition(', ')[0] or writer}"


class Writers:
    """Slots by writer and environment. A writer that is silent for ``lease_s`` loses its slots.

    A connected writer keeps in touch, however long its environments take for a step. A writer that
    comes back goes on in new slots, with its old numbers: repeated steps, whose answer was lost,
    are recognised as stored. ``most_expired`` writers are remembered for this; the
    longest silent ones are forgotten.
    """

    def __init__(
        self,
        lease_s: float,
        most_expired: int = MOST_EXPIRED,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        #: A writer is connected as long as it is heard of so often, in seconds.
        self.lease_s = lease_s
        self._clock = clock
        self._most_expired = most_expired
        self._writers: dict[str, _Writer] = {}
        #: Writers whose lease is over, the oldest first.
        self._expired: dict[str, _Writer] = {}
        self._slots = 0

    def __len__(self) -> int:
        """Return how many writers there are."""
        return len(self._writers)

    def open(self, name: str) -> list[Slot]:
        """Know the writer ``name`` from now on; it keeps its slots if it was known.

        Return the slots of writers that are forgotten for it.
        """
        if name not in self._writers:
            self._writers[name] = self._returned(name) or _Writer()
        self._writers[name].seen = self._clock()
        return []

    def require(self, name: str) -> None:
        """Raise UnknownWriter unless ``name`` is open, or was until its lease was over."""
        if name not in self._writers and name not in self._expired:
            raise UnknownWriter(f"there is no writer {name!r}; open it")

    def hear(self, name: str) -> None:
        """Take note that a writer is connected, though it has no steps to write.

        UnknownWriter unless ``name`` is open, or was until its lease was over.
        """
        self.require(name)
        self.open(name)

    def now(self) -> float:
        """Return the time by which leases end, in seconds."""
        return self._clock()

    @property
    def counted_s(self) -> float:
        """How long a silent writer counts as connected."""
        return self.lease_s / 2

    def connected_slots(self, of: str | None = None) -> int:
        """Return how many slots with a place connected writers have, or the writer ``of``.

        Writers of before a restart are not counted: some may have ended with it.
        """
        since = self._clock() - self.counted_s
        return sum(
            slot.has_place
            for name, each in self._writers.items()
            if each.seen >= since and not each.was_restored and of in (None, name)
            for slot in each.slots.values()
        )

    def labels(self) -> dict[int, str]:
        """Return how an operator finds the environment of each slot, by the slot's number."""
        return {
            slot.number: label_of(name, environment)
            for name, writer in self._writers.items()
            for environment, slot in writer.slots.items()
        }

    def slot(self, name: str, environment: int) -> Slot:
        """Return the slot of an environment, a new one for a new environment; see ``hear``."""
        self.hear(name)
        writer = self._writers[name]
        slot = writer.slots.get(environment)
        if slot is None:
            slot = Slot(self._new_number(), may_have_gap=writer.was_restored)
            writer.slots[environment] = slot
        return slot

    def renumber(self, slot: Slot) -> None:
        """Give ``slot`` a number that no slot has had: its next steps lie in rows apart."""
        slot.number = self._new_number()

    def _new_number(self) -> int:
        self._slots += 1
        return self._slots - 1

    def contents(self) -> Bytes:
        """Return all writers and slots as JSON, uint8 [bytes]; expired writers apart."""
        contents = {
            "slots": self._slots,
            "writers": {name: writer.contents() for name, writer in self._writers.items()},
            "expired": {name: writer.contents() for name, writer in self._expired.items()},
        }
        return np.frombuffer(json.dumps(contents).encode(), np.uint8)

    def restore(self, contents: Bytes) -> None:
        """Go on from the state of ``contents``: later steps may be lost.

        Older contents have no expired writers.
        """
        read = json.loads(contents.tobytes())
        self._slots = read["slots"]
        for name, slots in read["writers"].items():
            self._writers[name] = _Writer.restored(slots)
            self.open(name)
        for name, slots in read.get("expired", {}).items():
            self._expired[name] = _Writer.restored(slots)

    def close(self, name: str) -> list[Slot]:
        """Forget a writer and return its slots."""
        self._expired.pop(name, None)
        writer = self._writers.pop(name, None)
        return [] if writer is None else list(writer.slots.values())

    def expired(self) -> list[Slot]:
        """Return the slots of expired writers, which lose them."""
        latest = self._clock() - self.lease_s
        silent = [name for name, writer in self._writers.items() if writer.seen < latest]
        ended = {name: self._writers.pop(name) for name in silent}
        self._expired |= ended
        while len(self._expired) > self._most_expired:
            del self._expired[next(iter(self._expired))]
        return [slot for writer in ended.values() for slot in writer.slots.values()]

    def _returned(self, name: str) -> _Writer | None:
        """Return an expired writer with new slots; None if it is unknown.

        Its episodes have ended: later steps lie in rows apart.
        """
        writer = self._expired.pop(name, None)
        if writer is not None:
            for slot in writer.slots.values():
                self.renumber(slot)
        return writer


class Places:
    """Gives the environments of ``writers`` places among ``capacity`` steps of ``tables``.

    Without a limit, steps of all environments would be evicted before an item of them is complete.
    An environment waits for a place as long as writers count that may have ended, for example
    before a restart of the server. After that its steps are dropped, until others leave:
    environments with a place go on.
    """

    def __init__(self, capacity: int, tables: Collection[Table], writers: Writers) -> None:
        self._capacity = capacity
        self._tables = tables
        self._writers = writers
        self._say_at = 0.0

    def lack(self, writer: str, slot: Slot) -> str:
        """Give ``slot`` a place if one is free; if not, return the reason."""
        if slot.has_place:
            return ""
        slots = self._writers.connected_slots() + 1
        needed = self._needed(slots)
        if needed <= self._capacity:
            slot.has_place = True
            return ""
        if slot.waits_until is None:
            alone = self._writers.connected_slots(writer) + 1
            waits = self._needed(alone) <= self._capacity
            slot.waits_until = self._writers.now() + waits * self._writers.counted_s
        return (
            f"{self._capacity:,} steps are stored here, of {slots} environments, whose steps would "
            f"be gone before an item of them is complete: {needed:,} are needed at least; raise "
            f"replay_size, or let fewer environments play"
        )

    def is_refused(self, writer: str, environment: int, slot: Slot, lack: str) -> bool:
        """Return whether ``slot`` has waited long enough for a place; log it then."""
        now = self._writers.now()
        if slot.waits_until is None or now < slot.waits_until:
            return False
        if now >= self._say_at:
            self._say_at = now + SAY_EVERY_S
            _log.warning("nothing is learnt from %s: %s", label_of(writer, environment), lack)
        return True

    @property
    def most(self) -> int:
        """How many environments have a place at once: each takes a step at least."""
        return bisect_right(range(1, self._capacity + 1), self._capacity, key=self._needed)

    def _needed(self, slots: int) -> int:
        return max((table.least_rows(slots) for table in self._tables), default=slots)

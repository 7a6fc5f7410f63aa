"""Which environments have a place in a storage, so that items of all of them become complete."""

import logging
from bisect import bisect_right
from collections.abc import Collection
from typing import Protocol

from relaax.replay.writers import Slot, Writers, label_of

_log = logging.getLogger(__name__)

#: The log reports environments without a place at this interval.
SAY_EVERY_S = 60.0


class Table(Protocol):
    """The numbers that decide about places."""

    def least_rows(self, slots: int) -> int:
        """Return how many steps must be stored for items of so many slots to become complete."""
        ...


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

"""Who writes into which slot, and which step of it comes next."""

from dataclasses import dataclass, field
from time import monotonic

from relaax.errors import RelaaxError


class UnknownWriter(RelaaxError):
    """The writer has not been opened, or was silent for longer than its lease."""


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


@dataclass
class _Writer:
    slots: dict[int, Slot] = field(default_factory=dict)
    seen: float = 0.0


class Writers:
    """Slots by writer and environment. A writer that is silent for ``lease_s`` loses its own."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._writers: dict[str, _Writer] = {}
        self._slots = 0

    def __len__(self) -> int:
        """Return how many writers there are."""
        return len(self._writers)

    def open(self, name: str) -> None:
        """Know the writer ``name`` from now on; it keeps its slots if it was known."""
        self._writers.setdefault(name, _Writer()).seen = monotonic()

    def slot(self, name: str, environment: int) -> Slot:
        """Return the slot of an environment, a new one for a new environment.

        UnknownWriter unless ``name`` is open.
        """
        writer = self._writers.get(name)
        if writer is None:
            raise UnknownWriter(f"there is no writer {name!r}; open it")
        writer.seen = monotonic()
        slot = writer.slots.get(environment)
        if slot is None:
            slot = writer.slots[environment] = Slot(self._slots)
            self._slots += 1
        return slot

    def close(self, name: str) -> list[Slot]:
        """Forget a writer and return its slots."""
        writer = self._writers.pop(name, None)
        return [] if writer is None else list(writer.slots.values())

    def expired(self) -> list[Slot]:
        """Forget writers whose lease is over and return their slots."""
        latest = monotonic() - self._lease_s
        silent = [name for name, writer in self._writers.items() if writer.seen < latest]
        return [slot for name in silent for slot in self.close(name)]

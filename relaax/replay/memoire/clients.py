"""Which client has which slot."""

from collections import deque

from relaax.replay.writers import NoFreeSlot, Slot, Writers

#: Clients that lost their slot to a newer one of the same name, and that are remembered as such.
MOST_REPLACED = 1024


class ClientSlots:
    """``count`` slots. A client keeps its own while it writes, and for ``lease_s`` afterwards.

    A writer is named ``uuid/token``. The next client with the same uuid has the same slot; the one
    before it, if it still runs, may write no more. The slot that became free first is given to
    others first.
    """

    def __init__(self, count: int, lease_s: float) -> None:
        self._writers = Writers(lease_s, most_expired=0)  # their slots are given to others
        self._lease_s = lease_s
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
                f"closed, or is silent for {self._lease_s:g} s"
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

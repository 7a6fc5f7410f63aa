"""The place of each environment among all of a training."""

import threading
import time
from collections.abc import Callable, Sequence

#: The places of a holder that has not asked for so long are free.
LEASE_S = 30.0


class Places:
    """Gives each environment the smallest number that no other one has. For several threads.

    A holder, an RLX server or an actor, names all environments that it serves, by numbers of its
    own, and asks again now and then.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By holder: when it has asked last, and its environments' places.
        self._heard_at: dict[int, float] = {}
        self._held: dict[int, dict[int, int]] = {}

    def of(self, holder: int, environments: Sequence[int]) -> list[int]:
        """Return the places of ``environments``; all other places of the holder are free now."""
        with self._lock:
            self._heard_at[holder] = self._clock()
            self._forget()
            before = self._held.pop(holder, {})
            kept = {each: before[each] for each in environments if each in before}
            taken = {place for places in self._held.values() for place in places.values()}
            taken.update(kept.values())
            self._held[holder] = kept
            free = 0
            for each in environments:
                if each in kept:
                    continue
                while free in taken:
                    free += 1
                kept[each] = free
                taken.add(free)
            return [kept[each] for each in environments]

    def _forget(self) -> None:
        oldest = self._clock() - LEASE_S
        for holder in [each for each, at in self._heard_at.items() if at < oldest]:
            del self._heard_at[holder]
            self._held.pop(holder, None)

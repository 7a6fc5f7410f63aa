"""Who asks what the parameter server does, and whether all of them have been told."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from relaax.algorithm_base import Phase

#: Who has not asked for so long is gone: RLX servers ask twice a second, learners more often.
LATELY_S = 5.0


class _Told(NamedTuple):
    phase: Phase
    at: float


class Listeners:
    """Remembers what callers were told last. For several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By caller, those who asked last at the end.
        self._told: OrderedDict[str, _Told] = OrderedDict()

    def tell(self, caller: str, phase: Phase) -> None:
        """Take note that a caller is told a phase."""
        with self._lock:
            self._told[caller] = _Told(phase, self._clock())
            self._told.move_to_end(caller)
            self._forget()

    def all_know(self, phase: Phase) -> bool:
        """Return whether all who asked lately were told this phase."""
        with self._lock:
            self._forget()
            return all(told.phase is phase for told in self._told.values())

    def _forget(self) -> None:
        oldest = self._clock() - LATELY_S
        while self._told and next(iter(self._told.values())).at < oldest:
            self._told.popitem(last=False)

"""Attempts without the right proof: counted and logged for each address, and answered later.

That makes guesses show, and slows down those who wait for an answer. It does not keep a caller from
guessing on that hangs up, or makes several calls at once: a right token is never kept waiting, and
what is compared at once tells a wrong one, too. Against guesses tokens have 256 random bits.
"""

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from relaax.throttled_log import ThrottledLog

_log = logging.getLogger(__name__)

#: An address is forgotten when it has failed no more for so long.
MEMORY_S = 600.0

#: More addresses than these are not remembered: those go first that failed longest ago.
MOST_ADDRESSES = 4096

#: How much later an attempt is answered for each one before it from there, and at most.
STEP_S, MOST_S = 0.1, 5.0


@dataclass
class _Failed:
    count: int = 0
    last_at: float = 0.0


class Refusals:
    """Counts what was refused, at all ports of a process. For several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._log = ThrottledLog(_log, clock=clock)
        self._lock = threading.Lock()
        #: By address, those that failed last at the end.
        self._failed: OrderedDict[str, _Failed] = OrderedDict()
        self._totals: Counter[str] = Counter()

    def totals(self) -> dict[str, int]:
        """Return how many there were, by the kind of port."""
        with self._lock:
            return dict(self._totals)

    def add(self, port: str, address: str, reason: str) -> float:
        """Take note of a refusal; return how many seconds the answer should wait.

        ``port``: its kind, such as gRPC. ``address``: the caller's, without its own port.
        """
        with self._lock:
            self._totals[port] += 1
            now = self._clock()
            self._forget(now)
            failed = self._failed.setdefault(address, _Failed())
            self._failed.move_to_end(address)
            delay_s = min(failed.count * STEP_S, MOST_S)
            failed.count += 1
            failed.last_at = now
            self._log.warning(
                "refused at the %s port, from %s: %s", port, address, reason, kind=address
            )
            return delay_s

    def _forget(self, now: float) -> None:
        while self._failed:
            address, oldest = next(iter(self._failed.items()))
            if len(self._failed) < MOST_ADDRESSES and now - oldest.last_at < MEMORY_S:
                return
            del self._failed[address]

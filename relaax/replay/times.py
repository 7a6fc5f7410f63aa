"""Times of a replay's operations, counted since it was made."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

#: Counts are kept at least so many seconds apart.
APART_S = 0.5


class Rates:
    """Means over about ``window_s`` seconds, of counts as they were when they were asked for."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._past: deque[tuple[float, Mapping[str, float]]] = deque()

    def of(self, counts: Mapping[str, float], now: float) -> dict[str, float]:
        """Return by how much each of ``counts`` grows per second; nothing at the first time."""
        while len(self._past) > 1 and self._past[1][0] <= now - self._window_s:
            self._past.popleft()
        rates = {}
        if self._past and self._past[0][0] < now:
            began, before = self._past[0]
            rates = {
                f"{name} per second": (count - before[name]) / (now - began)
                for name, count in counts.items()
            }
        if not self._past or now - self._past[-1][0] >= APART_S:
            self._past.append((now, dict(counts)))
        return rates


class Times:
    """Counts calls, and adds up their seconds, by name; many threads may call it at once."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: dict[str, float] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count the operation inside, unless it raises."""
        began = self._clock()
        yield
        seconds = self._clock() - began
        with self._lock:
            for key, amount in ((f"{name} calls", 1), (f"{name} seconds", seconds)):
                self._counts[key] = self._counts.get(key, 0.0) + amount

    def counts(self) -> dict[str, float]:
        """Return ``NAME calls`` and ``NAME seconds`` of all that was counted."""
        with self._lock:
            return dict(self._counts)

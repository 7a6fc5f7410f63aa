"""Times of a replay's operations, counted since it was made."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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

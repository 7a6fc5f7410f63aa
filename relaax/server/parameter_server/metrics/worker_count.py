"""How many environments or connections all workers have, taken from the passing metrics."""

import threading
import time
from collections.abc import Callable

from relaax.metrics import Metrics

#: A worker that has not said its number for so long has none: it was killed. Workers say it every
#: ten seconds.
FORGET_AFTER_S = 30.0


class WorkerCount(Metrics):
    """Passes scalars on to ``metrics``, but for those whose names begin with ``prefix``.

    These are numbers that workers report of themselves. They are kept and added up. Many threads
    may call it at once.
    """

    def __init__(
        self, metrics: Metrics, prefix: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._metrics = metrics
        self._prefix = prefix
        self._clock = clock
        self._lock = threading.Lock()
        #: By worker: the number, and when it came.
        self._reports: dict[str, tuple[int, float]] = {}

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Keep the value if it is a worker's number, else pass it on."""
        if not name.startswith(self._prefix):
            self._metrics.scalar(name, y, x)
            return
        with self._lock:
            self._reports[name] = (int(y), self._clock())

    def total(self) -> int:
        """Return the sum for all workers that were heard of lately."""
        with self._lock:
            oldest = self._clock() - FORGET_AFTER_S
            for name, (count, came_at) in list(self._reports.items()):
                if count == 0 or came_at < oldest:
                    del self._reports[name]
            return sum(count for count, _ in self._reports.values())

"""How long the server takes to answer, as a client measures it: with the way there and back."""

import time
from collections.abc import Callable
from typing import TypeVar

from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.metrics import Metrics

Answer = TypeVar("Answer")


class ActLatency:
    """Sends ``metrics`` the metric ``act latency``, in seconds: the mean of a second, when it ends.

    However short the episodes are, a second has one at most.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._means = IntervalMetrics(metrics, clock=clock)

    def timed(self, ask: Callable[[], Answer]) -> Answer:
        """Return the answer of ``ask``; a call that raises is not measured."""
        asked = time.perf_counter()
        answer = ask()
        self._means.add("act latency", time.perf_counter() - asked)
        self._means.store_if_due()
        return answer

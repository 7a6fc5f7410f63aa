"""What a worker measures of itself: how long messages and evaluations take."""

import time

from relaax.interval_metrics import IntervalMetrics
from relaax.metrics import Metrics


class Measurements:
    """Times of turns and evaluations; stored once a second.

    A worker that is ``shared`` by many connections also says how many environments an evaluation
    is for, how long it takes, and how long messages have waited for it.
    """

    def __init__(self, metrics: Metrics, shared: bool) -> None:
        self._means = IntervalMetrics(metrics)
        self._is_shared = shared
        #: Since the turn began: when each evaluation began and ended, and its size.
        self._evaluations: list[tuple[float, float, int]] = []
        self._began_at = 0.0

    def begin_evaluation(self) -> None:
        """Take note that the agents are asked now."""
        self._began_at = time.monotonic()

    def end_evaluation(self, size: int) -> None:
        """Take note that ``size`` environments have their actions now."""
        self._evaluations.append((self._began_at, time.monotonic(), size))

    def add_turn(self, messages: int, began_at: float) -> None:
        """Count a turn that began at ``began_at`` and has answered some messages now."""
        self._means.add("act latency", time.monotonic() - began_at, messages)
        if self._is_shared and self._evaluations:
            begins, ends, sizes = zip(*self._evaluations, strict=True)
            self._means.spread("inference batch size", sizes)
            self._means.spread("inference queue wait", [begin - began_at for begin in begins])
            self._means.spread(
                "inference time", [end - begin for begin, end in zip(begins, ends, strict=True)]
            )
        self._evaluations.clear()
        self._means.store_if_due()

    def close(self) -> None:
        """Store what is left."""
        self._means.store()

"""What a learner measures of itself: how long it does what, and how often."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from relaax.interval_metrics import IntervalMetrics

#: What the loop does, one after the other.
PHASES = ("fetch", "learn", "publish")


class LearnerMeasurements:
    """Times of the learner's loop, once an interval of ``metrics``. For the loop's thread alone.

    A load is the share of all time that a phase takes, in percent. Since the phases do not overlap
    their loads are 100 together, at most.
    """

    def __init__(
        self, metrics: IntervalMetrics, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._means = metrics
        self._clock = clock
        self._updated_at = clock()
        #: Seconds of each phase, updates, and items in them, since the start.
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.updates = self.items = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure what is done inside, which is one of ``PHASES``."""
        began = self._clock()
        try:
            yield
        finally:
            seconds = self._clock() - began
            self.seconds[name] += seconds
            self._means.add(f"learner/{name} time", seconds)
            self._means.per_second(f"learner/{name} load", 100 * seconds)

    def add(self, name: str, value: float) -> None:
        """Add a value; what is stored is the mean."""
        self._means.add(name, value)

    def updated(self, items: int) -> None:
        """Count an update, which was made of so many items of the replay."""
        now = self._clock()
        self._means.add("learner/iteration time", now - self._updated_at)
        self._updated_at = now
        self.updates += 1
        self.items += items
        self._means.per_second("learner/updates per second", 1)
        self._means.per_second("learner/items per second", items)

    def store_if_due(self) -> None:
        """Store what has been measured if the interval is over."""
        self._means.store_if_due()

    def store(self) -> None:
        """Store what has been measured."""
        self._means.store()

"""Counts of saves, for alarms."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from relaax.telemetry.operators.families import Metric, counter, gauge


class SaveRecord:
    """Counts saves and their failures; for several threads.

    ``interval_s`` is the interval of saves, if there should be any.
    """

    def __init__(
        self, interval_s: float = math.inf, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._lock = threading.Lock()
        self._saved = self._failed = 0
        self._saved_at = clock()

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Count a save, which is made inside."""
        try:
            yield
        except BaseException:
            self.note_failed()
            raise
        self.note_saved()

    @property
    def saved(self) -> int:
        """How many were saved."""
        return self._saved

    def note_saved(self) -> None:
        """Count a save."""
        with self._lock:
            self._saved += 1
        self.note_current()

    def note_failed(self) -> None:
        """Count a failure."""
        with self._lock:
            self._failed += 1

    def note_current(self) -> None:
        """Take note that there is nothing to be saved."""
        self._saved_at = self._clock()

    def counts(self) -> list[Metric]:
        """Return the interval for Prometheus if another process decides when to save."""
        return [
            counter("checkpoints_saved", "Checkpoints that were saved", self._saved),
            counter("checkpoint_failures", "Checkpoints that could not be saved", self._failed),
        ]

    def figures(self) -> Iterable[Metric]:
        """Return figures for Prometheus."""
        age_s = self._clock() - self._saved_at
        return [
            *self.counts(),
            gauge(
                "checkpoint_age_seconds",
                "Since the last checkpoint was saved, or since the start",
                age_s,
            ),
            gauge(
                "checkpoint_interval_seconds",
                "How often a checkpoint should be saved",
                self._interval_s,
            ),
        ]

"""Looks, between messages, how far the training is."""

import time
from collections.abc import Callable

from relaax.server.parameter_server.training_monitor import (
    CHECK_INTERVAL_S,
    EndOfTraining,
    TrainingMonitor,
)


class SerialTraining:
    """Drives a ``TrainingMonitor`` without a thread.

    The training is over, too, after ``steps`` steps from now on, if given; ``global_t`` counts
    them. ``on_check`` is called with each look.
    """

    def __init__(
        self,
        monitor: TrainingMonitor,
        global_t: Callable[[], int],
        steps: int | None,
    ) -> None:
        self._monitor = monitor
        self._global_t = global_t
        self._last_t = None if steps is None else global_t() + steps
        self._check_at = 0.0
        self._end: EndOfTraining | None = None
        self.on_check: Callable[[], None] = lambda: None
        monitor.begin()

    def is_over(self) -> bool:
        """Look, if it is time, and return whether nothing more is to be learnt."""
        if self._end is None and self._last_t is not None and self._global_t() >= self._last_t:
            self._end = EndOfTraining.ASKED_STEPS
        now = time.monotonic()
        if self._end is None and now >= self._check_at:
            self._check_at = now + CHECK_INTERVAL_S
            self.on_check()
            self._end = self._monitor.check()
        return self._end is not None

    def finish(self, otherwise: EndOfTraining) -> EndOfTraining:
        """Save, and say why the training has ended: ``otherwise``, where no goal was reached."""
        end = self._end or otherwise
        self._monitor.finish(end)
        return end

"""How old parameters are when actors get them, and how much is done with them."""

import threading
import time
from collections.abc import Callable

import numpy as np

from relaax.interval_metrics import IntervalMetrics
from relaax.metrics import Metrics
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import ENDS, FINAL


class PolicyUse:
    """Counts actions and episodes between two updates of the parameters; means once a second.

    Surreal's metrics of an actor (``on_parameter_fetched``, seed 000, "Actor"). Its publish delay
    is a difference of two machines' clocks, and may be negative. Here it is the age that the
    parameter server itself has measured. Actors and what pulls parameters may be two threads.

    Parameters that nothing was done with say nothing of acting: where there was no action since the
    update before, as where all environments evaluate, an update is not counted.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._means = IntervalMetrics(metrics, clock=clock)
        self._lock = threading.Lock()
        self._actions = self._episodes = 0

    def acted(self, steps: StepBatch) -> None:
        """Count the actions of ``steps``, and the episodes that end in them."""
        with self._lock:
            self._actions += int(np.count_nonzero(steps.flags & FINAL == 0))
            self._episodes += int(np.count_nonzero(steps.flags & ENDS))

    def updated(self, age_s: float | None) -> None:
        """Take note of other parameters, published ``age_s`` seconds ago if that is known."""
        with self._lock:
            if self._actions:
                if age_s is not None:
                    self._means.add("actor/publish delay", age_s)
                self._means.add("actor/actions per update", self._actions)
                self._means.add("actor/episodes per update", self._episodes)
                self._actions = self._episodes = 0
            self._means.store_if_due()

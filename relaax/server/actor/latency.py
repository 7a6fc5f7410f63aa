"""Where the time of an actor's steps goes: means for TensorBoard and Prometheus."""

import time
from collections.abc import Callable

from relaax.algorithm_base.inference import ChoiceTimes
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.metrics import Metrics

#: How often means are stored.
INTERVAL_S = 2.0


class Latency:
    """Stores means of the parts of a step, from the first choice on; their sum is its time.

    ``environment_s`` returns how long environments have been busy in all. What lies between two
    choices is one step of all environments of the process. The first choice is left out, which
    compiles the network.
    """

    def __init__(
        self,
        metrics: Metrics,
        environment_s: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._means = IntervalMetrics(metrics, INTERVAL_S, clock)
        self._environment_s = environment_s
        #: At the choice before; None before the first one.
        self._busy_s: float | None = None

    def chose(self, times: ChoiceTimes) -> None:
        """Count a choice, and the work of environments since the choice before."""
        before, self._busy_s = self._busy_s, self._environment_s()
        if before is None:
            return
        self._means.add("latency/environment", self._busy_s - before)
        self._means.add("latency/inference", times.inference)
        for name, seconds in (("queue", times.queue), ("network", times.network)):
            if seconds is not None:
                self._means.add(f"latency/{name}", seconds)
        self._means.store_if_due()

    def close(self) -> None:
        """Store the means that are left."""
        self._means.store()

"""Where the time of an actor's steps goes: means for TensorBoard, histograms for Prometheus."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from relaax.algorithm_base.inference import ChoiceTimes
from relaax.telemetry.histograms import SECONDS, Histogram
from relaax.telemetry.metrics import Metrics
from relaax.telemetry.operators import Metric
from relaax.telemetry.operators.families import histograms

#: How often means are stored.
INTERVAL_S = 2.0

#: The parts of a step, and their names and meanings for operators.
_PARTS = {
    "queue": ("queue_wait_seconds", "From a question to its evaluation, of each choice"),
    "inference": ("inference_seconds", "The evaluation of the network, of each choice"),
    "network": ("network_seconds", "The rest of the time of a choice at an inference server"),
    "environment": ("environment_seconds", "The work of environments between two choices"),
}


class Latency:
    """Counts the parts of a step, from the first choice on; their sum is its time.

    Means are stored every two seconds. ``environment_s`` returns how long environments have been
    busy in all. What lies between two choices is one step of all environments of the process. The
    first choice is left out, which compiles the network.
    """

    def __init__(
        self,
        metrics: Metrics,
        environment_s: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metrics = metrics
        self._environment_s = environment_s
        self._clock = clock
        self._due = clock() + INTERVAL_S
        #: At the choice before; None before the first one.
        self._busy_s: float | None = None
        #: Seconds by part.
        self.parts = {name: Histogram(SECONDS) for name in _PARTS}
        #: The sum and the count of each part whose mean was stored.
        self._stored = dict.fromkeys(_PARTS, (0.0, 0.0))

    def chose(self, times: ChoiceTimes) -> None:
        """Count a choice, and the work of environments since the choice before."""
        before, self._busy_s = self._busy_s, self._environment_s()
        if before is None:
            return
        parts = self.parts
        parts["environment"].add(self._busy_s - before)
        parts["inference"].add(times.inference)
        if times.queue is not None and times.network is not None:
            parts["queue"].add(times.queue)
            parts["network"].add(times.network)
        if self._clock() >= self._due:
            self.close()

    def close(self) -> None:
        """Store the means that are left."""
        self._due = self._clock() + INTERVAL_S
        for name, part in self.parts.items():
            total, *counts = part.values()
            before, self._stored[name] = self._stored[name], (total, sum(counts))
            if new := sum(counts) - before[1]:
                self._metrics.scalar(f"latency/{name}", (total - before[0]) / new)


def latency_figures(by_policy: Mapping[str, Sequence[Latency]]) -> Iterator[Metric]:
    """Yield the parts of steps for operators; a part that no choice has had is left out."""
    known = dict(by_policy)  # of another thread
    for part, (name, means) in _PARTS.items():
        found = {}
        for policy, latencies in known.items():
            rows = [each.parts[part].values() for each in latencies]
            found[policy] = [sum(cells) for cells in zip(*rows, strict=True)]
        had = {policy: cells for policy, cells in found.items() if any(cells)}
        yield histograms(name, means, "policy", SECONDS, had)

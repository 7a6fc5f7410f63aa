"""What operators see of a learner."""

import time
from collections.abc import Callable, Iterable, Mapping

from relaax.live_lines import Figure
from relaax.server.common.operators import Metric, counter, gauge
from relaax.server.common.operators.families import counters
from relaax.server.learner.loop import LearnerLoop


class LearnerLine:
    """Makes figures of the ``iteration`` of the learner, and of what its replay has counted.

    Where the replay is elsewhere, ``stats`` returns nothing.
    """

    def __init__(
        self,
        iteration: Callable[[], int],
        stats: Callable[[], Mapping[str, float]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._iteration = iteration
        self._stats = stats
        self._clock = clock
        self._began_with, self._acted_before = iteration(), stats().get("actions stored", 0.0)
        self._seen = (clock(), self._began_with)

    def figures(self) -> list[Figure]:
        """Return the figures of this moment; rates are those since the call before."""
        then, before = self._seen
        now, iteration = self._clock(), self._iteration()
        self._seen = (now, iteration)
        stats = self._stats()
        figures = [
            Figure(iteration, "updates"),
            Figure((iteration - before) / max(now - then, 1e-9), "updates/s"),
        ]
        steps = stats.get("actions stored", 0.0) - self._acted_before
        if steps > 0:
            figures.append(Figure((iteration - self._began_with) / steps, "updates per step"))
        if "capacity" in stats:
            figures.append(Figure(stats["steps"], "steps stored", of=stats["capacity"]))
        return figures


def figures(loop: LearnerLoop) -> Iterable[Metric]:
    """Yield what the loop has done."""
    done = loop.measured
    yield gauge("learner_iteration", "Steps of the learner, of earlier starts too", loop.iteration)
    yield counter("learner_updates", "Batches that were learnt from", done.updates)
    yield counter("learner_items", "Items of the replay in them", done.items)
    yield counters(
        "learner_phase_seconds",
        "Time of the learner's loop, by what it did",
        "phase",
        dict(done.seconds),
    )

"""What a learner says in the live line of its group."""

import time
from collections.abc import Callable, Mapping

from relaax.live_lines import Figure


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

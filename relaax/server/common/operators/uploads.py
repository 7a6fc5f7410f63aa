"""How much waits to be sent to a store far away."""

from collections.abc import Callable, Iterable

from relaax.server.common.operators.families import Metric, gauges


class Uploads:
    """Counts what waits, by the place that it will go to."""

    def __init__(self) -> None:
        self._waiting: dict[str, Callable[[], int]] = {}

    def watch(self, place: str, waiting: Callable[[], int]) -> None:
        """Count what ``waiting`` returns, too."""
        self._waiting[place] = waiting

    def figures(self) -> Iterable[Metric]:
        """Return figures for Prometheus; none where nothing is sent."""
        if not self._waiting:
            return []
        counts = {place: float(waiting()) for place, waiting in self._waiting.items()}
        means = "Files and deletions that have not been sent yet to a store far away"
        return [gauges("files_waiting", means, "place", counts)]

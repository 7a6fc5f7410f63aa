"""Metrics that go to several places."""

from collections.abc import Sequence

from relaax.metrics import Metrics


class SeveralMetrics(Metrics):
    """Stores each scalar in all of ``places``."""

    def __init__(self, places: Sequence[Metrics]) -> None:
        self._places = tuple(places)

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Store ``y`` everywhere."""
        for metrics in self._places:
            metrics.scalar(name, y, x)

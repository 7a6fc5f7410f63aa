"""Writes metrics to TensorBoard event files."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from relaax.errors import ConfigurationError
from relaax.metrics import Metrics
from relaax.server.parameter_server.metrics.event_file import Summary
from relaax.server.parameter_server.metrics.event_log import EventLog
from relaax.server.parameter_server.metrics.queued_metrics import QueuedMetrics


class SeveralMetrics(Metrics):
    """Stores each scalar in all of ``places``."""

    def __init__(self, places: Sequence[Metrics]) -> None:
        self._places = tuple(places)

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Store ``y`` everywhere."""
        for metrics in self._places:
            metrics.scalar(name, y, x)


class EventWriter(QueuedMetrics):
    """Writes scalars to TensorBoard event files in a directory, which is created if missing.

    The first file begins with the ``description`` of the run. When writing fails, as on a full
    disk, the error is logged once and a new file is tried every ``retry_s`` seconds. The rest is
    that of ``QueuedMetrics``.

    ConfigurationError if the directory cannot be used at the start.
    """

    def __init__(
        self,
        directory: Path,
        global_t: Callable[[], int],
        description: Iterable[Summary] = (),
        *,
        capacity: int = 10_000,
        flush_interval_s: float = 5.0,
        report_interval_s: float = 60.0,
        retry_s: float = 60.0,
    ) -> None:
        super().__init__(
            _open(directory, retry_s, description),
            global_t,
            "the disk is too slow",
            capacity=capacity,
            flush_interval_s=flush_interval_s,
            report_interval_s=report_interval_s,
        )


def _open(directory: Path, retry_s: float, description: Iterable[Summary]) -> EventLog:
    try:
        return EventLog(directory, retry_s, description)
    except OSError as error:
        raise ConfigurationError(
            f"cannot use the metrics directory {directory}: {error.strerror}"
        ) from error

"""Writes metrics to TensorBoard event files."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from relaax.errors import ConfigurationError
from relaax.telemetry.metrics import Metrics
from relaax.telemetry.training.event_file import EventFile, Scalar, Summary
from relaax.telemetry.training.queued_metrics import QueuedMetrics

_log = logging.getLogger(__name__)


class EventLog:
    """Scalars in the event files of a directory, and ``description`` behind their beginning.

    The constructor raises OSError if it cannot create a file. A later error is logged once, with
    its traceback. Values are lost from then on, until a new file can be written; this is tried
    every ``retry_s`` seconds. Not thread-safe.
    """

    def __init__(
        self, directory: Path, retry_s: float, description: Iterable[Summary] = ()
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._retry_s = retry_s
        self._description = description
        self._file: EventFile | None = EventFile(directory)
        self._retry_at = 0.0
        self._lost = 0
        self._is_failing = False

    def begin(self, step: int) -> None:
        """See ScalarLog: mark it, and append the run's description."""
        with self._errors_logged():
            if file := self._usable_file():
                file.begin(step)
                file.describe(self._description)

    def write(self, scalar: Scalar) -> None:
        """Append a value; it is lost while no file can be written."""
        with self._errors_logged():
            if file := self._usable_file():
                file.write(scalar)
                return
        self._lost += 1

    def flush(self) -> None:
        """Write all appended values to the disk."""
        with self._errors_logged():
            if self._file is None:
                return
            self._file.flush()
            if self._is_failing:
                _log.warning(
                    "metrics are written to %s again; at least %d were lost",
                    self._directory,
                    self._lost,
                )
                self._is_failing, self._lost = False, 0

    def close(self) -> None:
        """Flush and close the file; do not write after that."""
        self.flush()
        with self._errors_logged():
            if self._file is not None:
                self._file.close()

    def _usable_file(self) -> EventFile | None:
        if self._file is None and time.monotonic() >= self._retry_at:
            self._retry_at = time.monotonic() + self._retry_s
            self._file = EventFile(self._directory)
        return self._file

    @contextlib.contextmanager
    def _errors_logged(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            # Any error: it is better to train without metrics than not to train.
            if not self._is_failing:
                _log.exception(
                    "cannot write metrics to %s; trying again every %g s",
                    self._directory,
                    self._retry_s,
                )
            self._is_failing = True
            self._abandon_file()

    def _abandon_file(self) -> None:
        """Close a file that may end in half a record: readers would stop there."""
        file, self._file = self._file, None
        self._retry_at = time.monotonic() + self._retry_s
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()
            with contextlib.suppress(OSError):
                _remove_if_empty(file.path)


def _remove_if_empty(path: Path) -> None:
    if path.stat().st_size == 0:
        path.unlink()


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

    The records of ``begin`` are followed by the ``description`` of the run. When writing fails, for
    example on a full disk, the error is logged once and a new file is tried every ``retry_s``
    seconds. The rest is as in ``QueuedMetrics``.

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

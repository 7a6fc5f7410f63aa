"""Hands scalars to a log, on a thread of its own."""

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from relaax.telemetry.metrics import Metrics
from relaax.telemetry.training.event_file import Scalar, tag

_log = logging.getLogger(__name__)

_NOT_A_STEP = "x is not a step"
_MAX_STEP = 2**63 - 1


class ScalarLog(Protocol):
    """Where scalars are kept; one thread calls it."""

    def begin(self, step: int) -> None:
        """Go on from ``step``: scalars of before that have this step or a later one are void."""

    def write(self, scalar: Scalar) -> None:
        """Take a value; these methods do not raise for a failing disk or network."""

    def flush(self) -> None:
        """Keep all that was taken."""

    def close(self) -> None:
        """Flush, and release the log's resources."""


class QueuedMetrics(Metrics):
    """Hands scalars to ``log``, which it owns.

    The step of a value without ``x`` is ``global_t()`` at that moment. An ``x`` is cut to a whole
    number, because event files hold whole numbers only. Characters that a tag cannot hold become
    ``_``: ``policy loss`` is shown as ``policy_loss``. NaN and infinities are written unchanged.

    ``scalar`` only puts the value into a queue of ``capacity`` values. If the queue is full, the
    value is dropped; a warning, at most one in ``report_interval_s`` seconds, gives the number. A
    separate thread writes the values, and flushes them every ``flush_interval_s`` seconds. ``slow``
    is the reason for a full queue in that warning.
    """

    def __init__(
        self,
        log: ScalarLog,
        global_t: Callable[[], int],
        slow: str,
        *,
        capacity: int = 10_000,
        flush_interval_s: float = 5.0,
        report_interval_s: float = 60.0,
    ) -> None:
        self._log = log
        self._global_t = global_t
        self._queue_is_full = slow
        self._flush_interval_s = flush_interval_s
        self._report_interval_s = report_interval_s
        #: A step stands between the scalars of a given-up run and those of its continuation. None
        #: ends the thread.
        self._queue: queue.Queue[Scalar | int | None] = queue.Queue(capacity)
        self._lock = threading.Lock()
        self._dropped: Counter[str] = Counter()
        self._is_closed = False
        self._thread = threading.Thread(target=self._drain, name="metrics", daemon=True)
        self._thread.start()

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Queue a value. It is dropped if the queue is full, and after ``close``."""
        if self._is_closed:
            return
        step = self._global_t() if x is None else x
        if not -_MAX_STEP <= step <= _MAX_STEP:
            self._count_dropped(_NOT_A_STEP)
            return
        try:
            self._queue.put_nowait(Scalar(tag(name), float(y), int(step), time.time()))
        except queue.Full:
            self._count_dropped(self._queue_is_full)

    def begin(self, step: int) -> None:
        """Mark that the run goes on from ``step``, before all later values."""
        if not self._is_closed:
            self._queue.put(step)

    def close(self, deadline_s: float = 5.0) -> None:
        """Write and flush the queued values, for at most ``deadline_s`` seconds."""
        if self._is_closed:
            return
        self._is_closed = True
        end = time.monotonic() + deadline_s
        try:
            self._queue.put(None, timeout=deadline_s)
            self._thread.join(max(0.0, end - time.monotonic()))
        except queue.Full:
            pass
        if self._thread.is_alive():
            _log.warning(
                "metrics were not written within %g s; about %d are lost",
                deadline_s,
                self._queue.qsize(),
            )

    def _drain(self) -> None:
        flush_at = time.monotonic() + self._flush_interval_s
        report_at = time.monotonic() + self._report_interval_s
        while True:
            try:
                item = self._queue.get(timeout=_until(min(flush_at, report_at)))
                if item is None:
                    break
                if isinstance(item, int):
                    self._log.begin(item)
                else:
                    self._log.write(item)
            except queue.Empty:
                pass
            if time.monotonic() >= flush_at:
                self._log.flush()
                flush_at = time.monotonic() + self._flush_interval_s
            if time.monotonic() >= report_at:
                self._report_dropped()
                report_at = time.monotonic() + self._report_interval_s
        self._log.close()
        self._report_dropped()

    def _count_dropped(self, reason: str) -> None:
        with self._lock:
            self._dropped[reason] += 1

    def _report_dropped(self) -> None:
        with self._lock:
            dropped, self._dropped = self._dropped, Counter()
        for reason, number in dropped.items():
            _log.warning("%d metrics were dropped: %s", number, reason)


def _until(moment: float) -> float:
    return max(0.0, moment - time.monotonic())

"""Sends a worker's metrics to the parameter server without making the worker wait."""

import logging
import queue
import threading
from collections.abc import Callable

from relaax.bridge import bridge_pb2
from relaax.metrics import Metrics

_log = logging.getLogger(__name__)


class MetricsSender(Metrics):
    """Collects scalars and hands them over in batches, on a thread of its own.

    When the parameter server does not keep up or is away, the newest scalars are dropped and
    counted: training never waits for its metrics.
    """

    def __init__(
        self,
        send: Callable[[bridge_pb2.ScalarMetrics], None],
        interval_s: float = 0.5,
        capacity: int = 10_000,
    ) -> None:
        self._send = send
        self._interval_s = interval_s
        self._queue: queue.Queue[bridge_pb2.ScalarMetric] = queue.Queue(capacity)
        self._dropped = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics-sender", daemon=True)
        self._thread.start()

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Queue a scalar; drop it when the queue is full. TypeError for ``y`` that is no number."""
        metric = bridge_pb2.ScalarMetric(name=name, y=float(y), x=x)
        try:
            self._queue.put_nowait(metric)
        except queue.Full:
            self._dropped += 1

    def close(self, deadline_s: float = 2.0) -> None:
        """Send what is left, for at most ``deadline_s`` seconds."""
        self._closing.set()
        self._thread.join(deadline_s)

    def _run(self) -> None:
        while not self._closing.wait(self._interval_s):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        batch = bridge_pb2.ScalarMetrics(metrics=self._drain())
        if not batch.metrics:
            return
        try:
            self._send(batch)
        except Exception as error:  # whatever it is, a metric must not end the training
            _log.debug("%d metrics were lost: %s", len(batch.metrics), error)
        if self._dropped:
            _log.warning("%d metrics were dropped: too many at once", self._dropped)
            self._dropped = 0

    def _drain(self) -> list[bridge_pb2.ScalarMetric]:
        drained = []
        while True:
            try:
                drained.append(self._queue.get_nowait())
            except queue.Empty:
                return drained

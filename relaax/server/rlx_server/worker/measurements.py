"""Times of a worker's messages and evaluations."""

import os
import socket
import time

from relaax.server.rlx_server.tally import WorkerRow
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.metrics import CONNECTIONS_OF, ENVIRONMENTS_OF, Metrics

#: How often measurements are stored.
INTERVAL_S = 1.0

#: How often the numbers of environments and connections are stored where they stay the same.
_SAME_NUMBER_INTERVAL_S = 10.0


class Measurements:
    """Times of turns and evaluations; stored once a second, and counted in ``row``.

    A worker that is ``shared`` by many connections also stores the number of environments in an
    evaluation, its time, and how long messages have waited for it.
    """

    def __init__(self, metrics: Metrics, shared: bool, row: WorkerRow) -> None:
        self._metrics = metrics
        self._row = row
        self._means = IntervalMetrics(metrics)
        self._is_shared = shared
        #: Seconds and number of messages of each turn.
        self._turns: list[tuple[float, int]] = []
        #: When the messages of each evaluation came, when it began and ended, and its size.
        self._evaluations: list[tuple[float, float, float, int]] = []
        self._store_at = time.monotonic() + INTERVAL_S
        #: The numbers of environments and connections that were stored last, when others may be
        #: stored, and when the same are stored again.
        self._connected = (0, 0)
        self._other_number_at = self._same_number_at = self._store_at

    def add_evaluation(self, arrived_at: float, began_at: float, size: int) -> None:
        """Count an evaluation for ``size`` environments that has just ended."""
        ended_at = time.monotonic()
        self._evaluations.append((arrived_at, began_at, ended_at, size))
        row = self._row
        row.count_steps(size)
        row.queue_wait.add(began_at - arrived_at)
        row.inference.add(ended_at - began_at)
        row.batch_size.add(size)

    def add_turn(self, arrived_at: float, messages: int) -> None:
        """Count messages that came at ``arrived_at`` and have just been answered."""
        now = time.monotonic()
        self._turns.append((now - arrived_at, messages))
        self._row.latency.add(now - arrived_at, messages)
        if now >= self._store_at:
            self._store_at = now + INTERVAL_S
            self.store()

    def note_connected(self, environments: int, connections: int) -> None:
        """Store how many there are, if that has changed or was stored long ago."""
        now, connected = time.monotonic(), (environments, connections)
        is_news = connected != self._connected and now >= self._other_number_at
        if is_news or (any(connected) and now >= self._same_number_at):
            self._store_connected(environments, connections, now)

    def close(self) -> None:
        """Store the remaining measurements, and that there are no more environments."""
        if any(self._connected):
            self._store_connected(0, 0, time.monotonic())
        self.store()

    def store(self) -> None:
        """Store the measurements since the last call."""
        for seconds, messages in self._turns:
            self._means.add("inference/act latency", seconds, messages)
        if self._is_shared and self._evaluations:
            arrivals, begins, ends, sizes = zip(*self._evaluations, strict=True)
            waits = [began - arrived for began, arrived in zip(begins, arrivals, strict=True)]
            times = [ended - began for ended, began in zip(ends, begins, strict=True)]
            self._means.spread("inference/batch size", sizes)
            self._means.spread("inference/queue wait", waits)
            self._means.spread("inference/time", times)
        self._turns.clear()
        self._evaluations.clear()
        self._means.store()

    def _store_connected(self, environments: int, connections: int, now: float) -> None:
        self._connected = (environments, connections)
        self._other_number_at = now + INTERVAL_S
        self._same_number_at = now + _SAME_NUMBER_INTERVAL_S
        worker = f"{socket.gethostname()}:{os.getpid()}"
        self._metrics.scalar(f"{ENVIRONMENTS_OF}{worker}", environments)
        self._metrics.scalar(f"{CONNECTIONS_OF}{worker}", connections)

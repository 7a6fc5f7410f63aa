"""Times of a worker's messages and evaluations."""

import os
import socket
import time

from relaax.server.rlx_server.tally import STEPS, WorkerRow
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
        #: Of each evaluation: how long its messages waited, how long it took, and its size.
        self._waits: list[float] = []
        self._times: list[float] = []
        self._sizes: list[int] = []
        self._store_at = time.monotonic() + INTERVAL_S
        #: The numbers of environments and connections that were stored last, when others may be
        #: stored, and when the same are stored again.
        self._connected = (0, 0)
        self._other_number_at = self._same_number_at = self._store_at

    def add_evaluation(self, arrived_at: float, began_at: float, size: int) -> None:
        """Count an evaluation for ``size`` environments that has just ended."""
        wait, seconds = began_at - arrived_at, time.monotonic() - began_at
        row = self._row
        row.add(STEPS, size)
        row.queue_wait.add(wait)
        row.inference.add(seconds)
        row.batch_size.add(size)
        if self._is_shared:
            self._waits.append(wait)
            self._times.append(seconds)
            self._sizes.append(size)

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
        self._turns.clear()
        for name, values in (
            ("batch size", self._sizes), ("queue wait", self._waits), ("time", self._times)
        ):  # fmt: skip
            if values:
                self._means.spread(f"inference/{name}", values)
                values.clear()
        self._means.store()

    def _store_connected(self, environments: int, connections: int, now: float) -> None:
        self._connected = (environments, connections)
        self._other_number_at = now + INTERVAL_S
        self._same_number_at = now + _SAME_NUMBER_INTERVAL_S
        worker = f"{socket.gethostname()}:{os.getpid()}"
        self._metrics.scalar(f"{ENVIRONMENTS_OF}{worker}", environments)
        self._metrics.scalar(f"{CONNECTIONS_OF}{worker}", connections)

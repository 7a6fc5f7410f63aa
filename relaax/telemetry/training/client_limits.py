"""Limits on the metrics that clients name."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from enum import Enum

from relaax.telemetry.metrics import OF_CLIENT, OF_EVALUATING_CLIENT, Metrics
from relaax.telemetry.operators import Metric
from relaax.telemetry.operators.families import counters
from relaax.telemetry.throttled_log import of_kind

_log = logging.getLogger(__name__)

_OF_CLIENTS = (OF_CLIENT, OF_EVALUATING_CLIENT)

#: A silent client may send so much at once: episodes of many environments end together.
BURST_S = 10.0


class _Limit(Enum):
    """The exceeded limit; the value is its name in figures and in the log."""

    NAMES = "names"
    RATE = "rate"


class ClientMetricLimits(Metrics):
    """Passes scalars on to ``metrics``, with limits on names that clients choose.

    They may have ``most_names`` names since the start, and there may be ``most_per_s`` in a second,
    of all clients together, on average: a token bucket of ``BURST_S`` seconds. Scalars beyond a
    limit are dropped, counted, and logged now and then with the option of the limit. A name counts
    once a value of it is passed on. Many threads may call it at once, and allowed scalars never
    wait for the log.
    """

    def __init__(
        self,
        metrics: Metrics,
        most_names: int,
        most_per_s: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metrics = metrics
        self._most_names = most_names
        self._most_per_s = most_per_s
        self._clock = clock
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._left = most_per_s * BURST_S
        self._filled_at = clock()
        self._dropped = dict.fromkeys(_Limit, 0)

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Pass ``y`` on, unless it is a client's and beyond a limit."""
        if not name.startswith(_OF_CLIENTS) or self._allows(name):
            self._metrics.scalar(name, y, x)

    def figures(self) -> Iterable[Metric]:
        """Return how many were dropped, by the limit."""
        with self._lock:
            dropped = {limit.value: float(number) for limit, number in self._dropped.items()}
        means = "Metrics that clients sent, and that were beyond a limit"
        return [counters("client_metrics_dropped", means, "limit", dropped)]

    def _allows(self, name: str) -> bool:
        with self._lock:
            limit = self._limit_of(name)
            if limit is not None:
                self._dropped[limit] += 1
        if limit is None:
            return True
        self._warn(limit, name)
        return False

    def _limit_of(self, name: str) -> _Limit | None:
        """Return the limit that keeps a metric out; if none does, it is counted as passed on."""
        now = self._clock()
        refilled = self._left + (now - self._filled_at) * self._most_per_s
        self._left, self._filled_at = min(refilled, self._most_per_s * BURST_S), now
        if self._left < 1:
            return _Limit.RATE
        if name not in self._names and len(self._names) >= self._most_names:
            return _Limit.NAMES
        self._left -= 1
        self._names.add(name)
        return None

    def _warn(self, limit: _Limit, name: str) -> None:
        if limit is _Limit.NAMES:
            text = (
                "the metric %r is dropped: environments have named %d others since the start "
                "(--max-client-metric-names)"
            )
            _log.warning(text, name, self._most_names, extra=of_kind(limit.value, at_once=1))
            return
        text = (
            "the metric %r is dropped: environments send more than %d in a second "
            "(--max-client-metric-rate)"
        )
        _log.warning(text, name, self._most_per_s, extra=of_kind(limit.value, at_once=1))

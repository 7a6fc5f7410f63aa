"""Metrics on their way: limited, counted, and remembered for the returns of the last episodes."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum

from relaax.checkpoints import MeanReturn
from relaax.errors import ConfigurationError
from relaax.telemetry.metrics import (
    EPISODE_REWARD,
    EVALUATION_REWARD_OF,
    OF_CLIENT,
    OF_EVALUATING_CLIENT,
    Metrics,
)
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
    """Passes scalars on to ``metrics``, with limits on those that clients name.

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


#: A worker without a report for so long was killed. Workers report every ten seconds.
FORGET_AFTER_S = 30.0


class WorkerCount(Metrics):
    """Passes scalars on to ``metrics``, but for those whose names begin with ``prefix``.

    These are numbers that workers report of themselves. They are kept and added up. Many threads
    may call it at once.
    """

    def __init__(
        self, metrics: Metrics, prefix: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._metrics = metrics
        self._prefix = prefix
        self._clock = clock
        self._lock = threading.Lock()
        #: By worker: the number, and when it came.
        self._reports: dict[str, tuple[int, float]] = {}

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Keep the value if it is a worker's number, else pass it on."""
        if not name.startswith(self._prefix):
            self._metrics.scalar(name, y, x)
            return
        with self._lock:
            self._reports[name] = (int(y), self._clock())

    def total(self) -> int:
        """Return the sum for all workers that were heard of lately."""
        with self._lock:
            oldest = self._clock() - FORGET_AFTER_S
            for name, (count, came_at) in list(self._reports.items()):
                if count == 0 or came_at < oldest:
                    del self._reports[name]
            return sum(count for count, _ in self._reports.values())


class EvaluationScores(Metrics):
    """Passes scalars on to ``metrics``, and calls ``on_score`` with versions and their scores.

    Many threads may call it at once, and so they call ``on_score``.
    """

    def __init__(self, metrics: Metrics, on_score: Callable[[int, float], object]) -> None:
        self._metrics = metrics
        self._on_score = on_score

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Take the score if it is one, and pass it on."""
        if name == EVALUATION_REWARD_OF and x is not None:
            self._on_score(int(x), float(y))
        self._metrics.scalar(name, y, x)


class EpisodeReturns(Metrics):
    """Passes scalars on to ``metrics`` and remembers the last ``window`` values of one name.

    The training monitor compares their mean with the goal. Many threads may call it at once.
    """

    def __init__(self, metrics: Metrics, window: int, name: str = EPISODE_REWARD) -> None:
        if window < 1:
            raise ConfigurationError(
                f"the number of episodes to average must be 1 or more, is {window}"
            )
        self._metrics = metrics
        self.window = window
        self._name = name
        self._lock = threading.Lock()
        self._returns: deque[float] = deque(maxlen=window)

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Remember the value if it is an episode's return, and pass it on."""
        if name == self._name:
            with self._lock:
                self._returns.append(float(y))
        self._metrics.scalar(name, y, x)

    def mean(self) -> float | None:
        """Return the mean of the remembered returns, or None before the first episode."""
        with self._lock:
            return sum(self._returns) / len(self._returns) if self._returns else None

    def earned(self) -> MeanReturn | None:
        """Return the mean with the number of its episodes, or None before the first episode."""
        with self._lock:
            count = len(self._returns)
            return MeanReturn(sum(self._returns) / count, count) if count else None

    def size(self) -> int:
        """Return the number of episodes remembered."""
        with self._lock:
            return len(self._returns)

    def is_full(self) -> bool:
        """Return whether ``window`` episodes are remembered."""
        return self.size() == self.window

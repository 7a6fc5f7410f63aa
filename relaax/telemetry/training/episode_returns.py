"""The returns of the last episodes."""

import threading
import time
from collections import deque
from collections.abc import Callable

from relaax.checkpoints import MeanReturn
from relaax.errors import ConfigurationError
from relaax.telemetry.metrics import EPISODE_REWARD, EVALUATION_REWARD_OF, Metrics

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

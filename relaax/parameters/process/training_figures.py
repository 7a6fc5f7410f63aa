"""The figures of a training, kept of the scalars that its processes send."""

import threading
import time
from collections import deque
from collections.abc import Callable

from relaax.checkpoints import MeanReturn
from relaax.errors import ConfigurationError
from relaax.parameters.process.standstill import Standstill
from relaax.telemetry.metrics import (
    CONNECTIONS_OF,
    ENVIRONMENTS_OF,
    EPISODE_AFTER,
    EPISODE_REWARD,
    EVALUATION_REWARD,
    EVALUATION_REWARD_OF,
    WAIT_OF,
    Metrics,
)

#: A worker without a report for so long was killed. Workers report every ten seconds.
FORGET_AFTER_S = 30.0

#: How many of the latest evaluations the progress line shows the mean of.
EVALUATIONS_SHOWN = 20


class LatestReturns:
    """The returns of the last ``window`` episodes. Many threads may call it at once."""

    def __init__(self, window: int) -> None:
        if window < 1:
            raise ConfigurationError(
                f"the number of episodes to average must be 1 or more, is {window}"
            )
        self.window = window
        self._lock = threading.Lock()
        self._returns: deque[float] = deque(maxlen=window)

    def add(self, episode_return: float) -> None:
        """Remember the return of an episode."""
        with self._lock:
            self._returns.append(episode_return)

    def earned(self) -> MeanReturn | None:
        """Return the mean with the number of its episodes; None before the first one."""
        with self._lock:
            count = len(self._returns)
            return MeanReturn(sum(self._returns) / count, count) if count else None

    def mean(self) -> float | None:
        """Return the mean; None before the first episode."""
        earned = self.earned()
        return None if earned is None else earned.mean

    def size(self) -> int:
        """Return the number of episodes remembered."""
        return len(self._returns)

    def is_full(self) -> bool:
        """Return whether ``window`` episodes are remembered."""
        return self.size() == self.window


class WorkerCount:
    """The sum of a number that each worker reports. Many threads may call it at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By worker: the number, and when it came.
        self._reports: dict[str, tuple[int, float]] = {}

    def note(self, worker: str, count: int) -> None:
        """Keep the number of a worker."""
        with self._lock:
            self._reports[worker] = (count, self._clock())

    def total(self) -> int:
        """Return the sum for all workers that were heard of lately."""
        with self._lock:
            oldest = self._clock() - FORGET_AFTER_S
            for name, (count, came_at) in list(self._reports.items()):
                if count == 0 or came_at < oldest:
                    del self._reports[name]
            return sum(count for count, _ in self._reports.values())


class TrainingFigures(Metrics):
    """Keeps the scalars that say how a training is, and passes curves on to ``metrics``.

    ``goal_episodes`` is the number of episodes in the mean that is compared with a goal. Many
    threads may call it at once, and so they call ``on_score`` and ``on_evaluated``.
    """

    def __init__(self, metrics: Metrics, standstill: Standstill, goal_episodes: int) -> None:
        self._metrics = metrics
        self.standstill = standstill
        self.returns = LatestReturns(goal_episodes)
        self.evaluations = LatestReturns(EVALUATIONS_SHOWN)
        self.environments, self.connections = WorkerCount(), WorkerCount()
        #: Takes the version of a policy and the score of its evaluation.
        self.on_score: Callable[[int, float], object] = lambda version, score: None
        #: Takes a number of an evaluated episode: its name, the version in a database, the number.
        self.on_evaluated: Callable[[str, int, float], object] = lambda name, version, y: None

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Keep a report of a worker, or a wait; pass all else on, scores and returns too."""
        if name.startswith(ENVIRONMENTS_OF):
            self.environments.note(name, int(y))
        elif name.startswith(CONNECTIONS_OF):
            self.connections.note(name, int(y))
        elif name.startswith(EPISODE_AFTER):
            if x is not None:
                self.on_evaluated(name.removeprefix(EPISODE_AFTER), int(x), float(y))
        elif name.startswith(WAIT_OF):
            part, _, reason = name.removeprefix(WAIT_OF).partition(": ")
            self.standstill.note_wait(part, reason, float(y))
        else:
            self._note_return(name, float(y), x)
            self._metrics.scalar(name, y, x)

    def _note_return(self, name: str, y: float, x: float | None) -> None:
        if name == EPISODE_REWARD:
            self.returns.add(y)
        elif name == EVALUATION_REWARD:
            self.evaluations.add(y)
        elif name == EVALUATION_REWARD_OF and x is not None:
            self.on_score(int(x), y)

"""What a worker counts about the episodes that go on."""

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from relaax.errors import ProtocolError
from relaax.interval_metrics import IntervalMetrics
from relaax.metrics import Metrics
from relaax.steps import ENDED, START, IntArray, Steps

FloatArray = npt.NDArray[np.float64]

#: The goal of a training is measured by this one, so that a client may not use the name.
EPISODE_REWARD = "episode reward"


_NO_SCORES: FloatArray = np.zeros(0)


class Episodes:
    """Rewards, steps and seconds of the episodes of a connection's environments."""

    def __init__(
        self, environments: int, metrics: Metrics, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._metrics = metrics
        self._means = IntervalMetrics(metrics, clock=clock)
        self._clock = clock
        self._is_running = np.zeros(environments, np.bool_)
        self._rewards = np.zeros(environments)
        self._lengths = np.zeros(environments, np.int64)
        self._started_at = np.zeros(environments)
        #: The last ones that were seen to be running, all of them; None after any has ended.
        self._running: IntArray | None = None

    def count(self, steps: Steps) -> tuple[FloatArray, bool]:
        """Count what environments report.

        Return the sums of rewards of the episodes that ended, float64 [E], and whether any ended
        or was given up. ProtocolError for a reward where no episode goes on.
        """
        with np.errstate(over="ignore"):  # a sum that is not finite is refused at the end
            return self._count(steps)

    def add_latency(self, seconds: float) -> None:
        """Count the seconds from a message's arrival to its answer."""
        self._means.add("act latency", seconds)
        self._means.store_if_due()

    def close(self) -> None:
        """Store what is left."""
        self._means.store()

    def _count(self, steps: Steps) -> tuple[FloatArray, bool]:
        environments, flags = steps.environments, steps.flags
        if steps.is_plain or not flags.any():
            if environments is not self._running:
                self._require_running(environments)
                self._running = environments
            self._rewards[environments] += steps.rewards
            self._lengths[environments] += 1
            return _NO_SCORES, False
        has_ended, starts = (flags & ENDED) != 0, (flags & START) != 0
        given_up = starts & ~has_ended & self._is_running[environments]
        stepped = has_ended | ~starts
        self._require_running(environments[stepped])
        self._rewards[environments[stepped]] += steps.rewards[stepped]
        self._lengths[environments[stepped]] += 1
        scores = self._rewards[environments[has_ended]]
        self._end(environments[has_ended | given_up])
        self._start(environments[starts])
        return scores, bool(has_ended.any() or given_up.any())

    def _start(self, environments: IntArray) -> None:
        self._is_running[environments] = True
        self._rewards[environments] = 0.0
        self._lengths[environments] = 0
        self._started_at[environments] = self._clock()

    def _end(self, environments: IntArray) -> None:
        """Store the episodes' metrics; nothing for one without a single step."""
        now = self._clock()
        self._running = None
        self._is_running[environments] = False
        for environment in environments.tolist():
            reward, length = float(self._rewards[environment]), int(self._lengths[environment])
            if not np.isfinite(reward):
                raise ProtocolError("the sum of an episode's rewards is not finite")
            if length == 0:
                continue
            seconds = now - float(self._started_at[environment])
            self._metrics.scalar(EPISODE_REWARD, reward)
            self._means.add("episode length", length)
            self._means.add("episode time", seconds)
            self._means.add("reward per time", reward / max(seconds, 1e-9))

    def _require_running(self, environments: IntArray) -> None:
        idle = environments[~self._is_running[environments]]
        if len(idle):
            raise ProtocolError(
                f"a reward came before act: no episode is going on in environment {idle[0]}"
            )

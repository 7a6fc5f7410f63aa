"""What a worker counts about the episode that goes on."""

import time
from collections.abc import Callable

from relaax.common.metrics import Metrics


class EpisodeRecord:
    """Rewards, steps and seconds of one episode; stored as metrics at its end."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._clock = clock
        self.is_running = False

    def start(self) -> None:
        """Begin an episode."""
        self.is_running = True
        self._started_at = self._clock()
        self._reward = 0.0
        self._steps = 0
        self._act_latency_s = 0.0
        self._actions = 0

    def add_reward(self, reward: float) -> None:
        """Count a step and its reward."""
        self._reward += reward
        self._steps += 1

    def add_action(self, latency_s: float) -> None:
        """Count an action that took ``latency_s`` seconds to choose, without the network."""
        self._act_latency_s += latency_s
        self._actions += 1

    def end(self) -> None:
        """Store the episode's metrics; nothing for one without a single step."""
        self.is_running = False
        if self._steps == 0:
            return
        seconds = self._clock() - self._started_at
        self._metrics.scalar("episode reward", self._reward)
        self._metrics.scalar("episode length", self._steps)
        self._metrics.scalar("episode time", seconds)
        self._metrics.scalar("reward per time", self._reward / max(seconds, 1e-9))
        self._metrics.scalar("act latency", self._act_latency_s / max(self._actions, 1))

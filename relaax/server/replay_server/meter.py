"""How a replay is, as metrics."""

from relaax.metrics import Metrics
from relaax.replay.replay import Replay


class ReplayMeter:
    """Stores what ``Replay.stats`` returns, in a group of metrics of this server's own."""

    def __init__(self, replay: Replay, metrics: Metrics, server: str) -> None:
        self._replay = replay
        self._metrics = metrics
        self._group = f"replay {server}"

    def store(self) -> None:
        """Store how the replay is now."""
        for name, value in self._replay.stats().items():
            self._metrics.scalar(f"{self._group}/{name.replace('/', ' ')}", value)

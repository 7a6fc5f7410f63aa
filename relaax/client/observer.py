"""What can be watched of a run of episodes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EpisodeSummary:
    """An episode that is over: the sum of its rewards, its steps, and how long it took."""

    episode_return: float
    length: int
    seconds: float


class RunObserver:
    """Watches a run; override the methods that you need."""

    def on_connected(self) -> None:
        """Called when the server has answered the first state of a session."""

    def on_disconnected(self) -> None:
        """Called when the connection was lost in the middle of an episode."""

    def on_step(self, count: int = 1) -> None:
        """Called when the environments have taken ``count`` steps."""

    def on_episode(self, summary: EpisodeSummary) -> None:
        """Called when an episode is over."""

"""What a run of episodes tells to whoever watches it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EpisodeSummary:
    """An episode that is over: the sum of its rewards, its steps, and how long it took."""

    episode_return: float
    length: int
    seconds: float


class RunObserver:
    """Watches a run; override what is of interest."""

    def on_connected(self) -> None:
        """Take note that the server has answered the first state of a session."""

    def on_disconnected(self) -> None:
        """Take note that the connection was lost in the middle of an episode."""

    def on_step(self, count: int = 1) -> None:
        """Take note that the environments have made so many steps."""

    def on_episode(self, summary: EpisodeSummary) -> None:
        """Take note of an episode that is over."""

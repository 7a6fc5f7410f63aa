"""What is counted of an actor's episodes."""

from relaax.actor.modes import TRAINING, ActorMode
from relaax.client.observer import EpisodeSummary, RunObserver
from relaax.interval_metrics import IntervalMetrics
from relaax.metrics import EPISODE_REWARD, Metrics

#: The sum of the rewards of an episode from which nothing is learnt.
EVALUATION_REWARD = "evaluation/reward"


class EpisodeMetrics(RunObserver):
    """Stores metrics of episodes, and hands all on to ``observer``."""

    def __init__(self, metrics: Metrics, mode: ActorMode, observer: RunObserver) -> None:
        self._metrics = metrics
        self._means = IntervalMetrics(metrics)
        self._reward = EPISODE_REWARD if mode == TRAINING else EVALUATION_REWARD
        self._group = "episode" if mode == TRAINING else "evaluation"
        self._observer = observer

    def on_connected(self) -> None:
        """Hand on."""
        self._observer.on_connected()

    def on_step(self, count: int = 1) -> None:
        """Hand on."""
        self._observer.on_step(count)

    def on_episode(self, summary: EpisodeSummary) -> None:
        """Store sum of rewards, length and time, as workers of the RLX server do."""
        self._metrics.scalar(self._reward, summary.episode_return)
        self._means.add(f"{self._group}/length", summary.length)
        self._means.add(f"{self._group}/time", summary.seconds)
        self._means.store_if_due()
        self._observer.on_episode(summary)

    def close(self) -> None:
        """Store the means that are left."""
        self._means.store()

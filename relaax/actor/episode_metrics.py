"""What is counted of an actor's episodes."""

from collections.abc import Callable

from relaax.actor.session import TRAINING, ActorMode
from relaax.algorithm_base import EvaluatedPolicy
from relaax.client.simulator import EpisodeSummary, RunObserver
from relaax.interval_metrics import IntervalMetrics
from relaax.metrics import (
    EPISODE_REWARD,
    EVALUATION_REWARD,
    EVALUATION_REWARD_AFTER,
    EVALUATION_REWARD_OF,
    Metrics,
)


class EpisodeMetrics(RunObserver):
    """Stores metrics of episodes, as workers of the RLX server do; hands all on to ``observer``.

    Of an episode from which nothing is learnt, ``policy`` says what it was played with, if its
    version is known; else ``iteration`` the learner's count of its steps, if that is known.
    ``on_taken`` is called with the number of steps that are learnt from.
    """

    def __init__(
        self,
        metrics: Metrics,
        mode: ActorMode,
        observer: RunObserver,
        policy: Callable[[], EvaluatedPolicy | None] = lambda: None,
        iteration: Callable[[], int | None] = lambda: None,
        on_taken: Callable[[int], object] = lambda steps: None,
    ) -> None:
        self._metrics = metrics
        self._means = IntervalMetrics(metrics)
        self._is_training = mode == TRAINING
        self._observer = observer
        self._policy = policy
        self._iteration = iteration
        self._on_taken = on_taken

    def on_connected(self) -> None:
        """Hand on."""
        self._observer.on_connected()

    def on_step(self, count: int = 1) -> None:
        """Count, and hand on."""
        if self._is_training:
            self._on_taken(count)
        self._observer.on_step(count)

    def on_episode(self, summary: EpisodeSummary) -> None:
        """Store sum of rewards, length and time."""
        if self._is_training:
            self._metrics.scalar(EPISODE_REWARD, summary.episode_return)
            self._means.add("episode/length", summary.length)
            self._means.add("episode/time", summary.seconds)
            self._means.store_if_due()
        else:
            self._store_score(summary)
        self._observer.on_episode(summary)

    def close(self) -> None:
        """Store the means that are left."""
        self._means.store()

    def _store_score(self, summary: EpisodeSummary) -> None:
        """Store the score of a policy, at its version or at the learner's step, as is known."""
        policy = self._policy()
        step = None if policy is None else policy.global_t
        self._metrics.scalar(EVALUATION_REWARD, summary.episode_return, step)
        self._metrics.scalar("evaluation/length", summary.length, step)
        if policy is not None and policy.version is not None:
            self._metrics.scalar(EVALUATION_REWARD_OF, summary.episode_return, policy.version)
        elif policy is None and (iteration := self._iteration()) is not None:
            self._metrics.scalar(EVALUATION_REWARD_AFTER, summary.episode_return, iteration)

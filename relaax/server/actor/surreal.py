"""Plays with an actor of the algorithm's own class, which holds its environment: see Surreal's."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import gymnasium
import numpy as np

from relaax.algorithm_base import ConfigBase, EvaluatedPolicy
from relaax.client.checks import checked_reward
from relaax.client.gymnasium_actions import action_space_as_json
from relaax.client.gymnasium_factory import Environment
from relaax.client.gymnasium_observations import observation_space_as_json, state_encoder
from relaax.client.restarting_environments import require_finite
from relaax.client.simulator import EpisodeSummary, RunObserver, RunOutcome, RunResult
from relaax.client.simulator_task import made, naming
from relaax.compat.surreal.session import TRAINING, ActorMode
from relaax.configuration.announced_spaces import AnnouncedSpaces
from relaax.configuration.first_look import FirstLook, first_look
from relaax.errors import ConfigurationError
from relaax.observations import mapped
from relaax.server.actor.wiring import ActorParts
from relaax.telemetry.episode_numbers import EPISODE_INFO, environments_own
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.kept_counts import TAKEN
from relaax.telemetry.metrics import (
    EPISODE_LENGTH,
    EPISODE_RETURN,
    EPISODE_REWARD,
    EVALUATION_REWARD,
    EVALUATION_REWARD_AFTER,
    OF_CLIENT,
    OF_EVALUATING_CLIENT,
    Metrics,
    store_evaluated,
)


class EpisodeMetrics(RunObserver):
    """Stores metrics of episodes, as workers of the RLX server do; hands all on to ``observer``.

    For an episode from which nothing is learnt, ``policy`` returns the version that played it, if
    it is known; otherwise ``iteration`` returns the learner's count of its steps, if that is known.
    ``on_taken`` is called with the number of learnt steps.
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

    def on_doubt(self, message: str) -> None:
        """Hand on."""
        self._observer.on_doubt(message)

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
            for name, y in environments_own(summary.numbers).items():
                self._means.add(f"{OF_CLIENT}{EPISODE_INFO}{name}", y)
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
        for name, y in environments_own(summary.numbers).items():
            self._metrics.scalar(f"{OF_EVALUATING_CLIENT}{EPISODE_INFO}{name}", y, step)
        if policy is not None and policy.version is not None:
            own = {EPISODE_RETURN: summary.episode_return, EPISODE_LENGTH: summary.length}
            numbers = {**summary.numbers, **own}
            store_evaluated(self._metrics, numbers, policy.version, by_learner=policy.by_learner)
        elif policy is None and (iteration := self._iteration()) is not None:
            self._metrics.scalar(EVALUATION_REWARD_AFTER, summary.episode_return, iteration)


class WatchedEnvironment(gymnasium.Wrapper):  # type: ignore[misc]  # Gymnasium has no types here
    """Reports when an environment is busy; ValueError for a number that is not finite.

    ``look`` inspects its first steps.
    """

    def __init__(
        self, environment: Environment, observer: RunObserver, look: FirstLook | None = None
    ) -> None:
        super().__init__(environment)
        self._observer = observer
        self.look = look
        self._encode = state_encoder(environment.observation_space)

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        self._observer.environment_begins()
        observation, info = self.env.reset(**arguments)
        self._observer.environment_returned()
        require_finite(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Make a step."""
        self._observer.environment_begins()
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._observer.environment_returned()
        require_finite(observation)
        earned = checked_reward(reward)
        if self.look is not None:
            states = mapped(lambda part: part[np.newaxis], self._encode(observation))
            if not self.look.take(np.array([earned]), states):
                self.look = None
        return observation, earned, terminated, truncated, info


def require_fit(config: ConfigBase, environment: Environment, env: str) -> AnnouncedSpaces:
    """Return the environment's spaces; ConfigurationError unless they are those of ``config``."""
    announced = AnnouncedSpaces(
        env,
        observation_space_as_json(environment.observation_space),
        action_space_as_json(environment.action_space),
    )
    if reason := announced.misfit(config):
        raise ConfigurationError(reason)
    return announced


def play_surreal(
    parts: ActorParts, make_environment: Callable[[], Environment], report: RunObserver
) -> RunResult:
    """Play until the training is over, or all episodes are."""
    options, config = parts.options, parts.config
    env, learns = str(options.env), options.mode == TRAINING
    with naming(env):
        environment = made(lambda: WatchedEnvironment(make_environment(), report), report)
    with ExitStack() as resources:
        resources.enter_context(environment)
        parts.doubts.note(require_fit(config, environment, env), config)
        environment.look = first_look(parts.doubts, config, learns=learns)
        actor = resources.enter_context(closing(parts.surreal_actor()))
        metrics = EpisodeMetrics(
            actor.session.metrics,
            actor.actor_mode,
            report,
            actor.policy,
            actor.fetched_iteration,
            partial(parts.kept.add, TAKEN),
        )
        left = None if options.episodes is None else options.episodes - report.episodes_before
        actor.main(environment, resources.enter_context(closing(metrics)), left)
    return RunResult(RunOutcome.FINISHED, "the training or the episodes are over")

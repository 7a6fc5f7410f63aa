"""The task of a process of ``relaax-actor``: it makes an environment and an actor, and plays."""

import importlib.util
import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from relaax.algorithm_base import EvaluatedPolicy
from relaax.client.checks import checked_reward
from relaax.client.gymnasium_factory import Environment, EnvironmentFactory, GymnasiumFactory
from relaax.client.gymnasium_observations import state_encoder
from relaax.client.gymnasium_tasks import EpisodeRecorder
from relaax.client.restarting_environments import require_finite
from relaax.client.run_options import VideoOptions
from relaax.client.run_result import RunOutcome, RunResult
from relaax.client.simulator import EpisodeSummary, RunObserver
from relaax.compat.surreal.session import TRAINING, ActorMode
from relaax.configuration import ActorOptions, load_actor
from relaax.configuration.access import begin_access
from relaax.configuration.announced_spaces import Doubts
from relaax.configuration.first_look import FirstLook, first_look
from relaax.errors import ConfigurationError
from relaax.net.listening import allow_many_files
from relaax.observations import mapped
from relaax.server.actor.wiring import algorithm_of, make_actor, require_fit
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.kept_counts import DELIVERED, DROPPED, TAKEN, KeptCounts
from relaax.telemetry.logs import show_name, start_logging
from relaax.telemetry.metrics import (
    EPISODE_REWARD,
    EVALUATION_REWARD,
    EVALUATION_REWARD_AFTER,
    EVALUATION_REWARD_OF,
    Metrics,
)
from relaax.telemetry.operators.certificates import Certificates

#: The end of a Python file's name; a class of the user's follows it.
_FILE = ".py"

_log = logging.getLogger(__name__)


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


@dataclass(frozen=True)
class ClassFactory:
    """Makes an environment of a class in a file."""

    file: Path
    name: str
    kwargs: Mapping[str, Any]

    def __call__(self) -> Environment:
        """Return a new environment; ConfigurationError if there is no such file or class."""
        spec = importlib.util.spec_from_file_location(self.file.stem, self.file)
        if spec is None or spec.loader is None or not self.file.is_file():
            raise ConfigurationError(f"--env: there is no file {self.file}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        make = getattr(module, self.name, None)
        if make is None:
            raise ConfigurationError(f"--env: {self.file} has no class {self.name!r}")
        environment: Environment = make(**self.kwargs)
        return environment


def names_class(env: str) -> bool:
    """Return whether ``env`` is a class in a file, and no name of Gymnasium's."""
    return env.rpartition(":")[0].endswith(_FILE)


def environment_factory(env: str, kwargs: Mapping[str, Any]) -> EnvironmentFactory:
    """Return the factory of ``env``: a Gymnasium id, MODULE:ID, or FILE.py:CLASS."""
    file, _, name = env.rpartition(":")
    if names_class(env):
        return ClassFactory(Path(file), name, kwargs)
    return GymnasiumFactory(env, dict(kwargs))


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


@dataclass(frozen=True)
class ActorTask:
    """Plays in one environment, with the actor that a command line asks for."""

    arguments: tuple[str, ...]

    def __call__(self, index: int, report: RunObserver) -> RunResult:
        """Play until the training is over, or all episodes are."""
        configuration = load_actor(self.arguments)
        options, env = configuration.options, str(configuration.options.env)
        start_logging(options.log_level, options.log_file, f"relaax-actor {index}")
        access = begin_access(options, listens=False)
        allow_many_files()
        show_name()
        kept = KeptCounts([TAKEN, DELIVERED, DROPPED]).row()
        try:
            algorithm, config = algorithm_of(configuration)
            report.environment_begins()
            environment = WatchedEnvironment(_environment(options, index), report)
            report.environment_returned()
        except Exception as error:  # an environment may raise anything; the parent prints it
            if report.restarts:
                raise
            _log.debug("%s cannot be made", env, exc_info=True)
            return RunResult(RunOutcome.UNUSABLE, f"{env}: {error}")
        with ExitStack() as resources:
            resources.enter_context(environment)
            if index == 0:  # the others of this command would report the same
                resources.enter_context(closing(Certificates(access.tls)))
            try:
                announced = require_fit(config, environment, env)
                if index == 0:
                    doubts, learns = Doubts(_log), options.mode == TRAINING
                    doubts.note(announced, config)
                    environment.look = first_look(doubts, config, learns=learns)
                actor = make_actor(
                    algorithm, config, options, index, kept, resources, report.restarts
                )
            except ConfigurationError as error:
                return RunResult(RunOutcome.UNUSABLE, str(error))
            metrics, mode = actor.session.metrics, actor.actor_mode
            episodes = EpisodeMetrics(
                metrics,
                mode,
                report,
                actor.policy,
                actor.fetched_iteration,
                partial(kept.add, TAKEN),
            )
            actor.main(environment, episodes, _left(options.episodes, report.episodes_before))
            episodes.close()
        return RunResult(RunOutcome.FINISHED, "the training or the episodes are over")


def _left(episodes: int | None, before: int) -> int | None:
    return None if episodes is None else episodes - before


def _environment(options: ActorOptions, index: int) -> Environment:
    """Return the environment of actor ``index``; the first one's may be recorded."""
    env, kwargs = str(options.env), options.env_kwargs
    if options.record_video is None or index > 0:
        return environment_factory(env, kwargs)()
    if not names_class(env):
        kwargs = {"render_mode": "rgb_array", **kwargs}
    environment = environment_factory(env, kwargs)()
    video = VideoOptions(options.record_video, options.record_every, options.max_videos)
    return EpisodeRecorder(environment, video, env)

"""The task of a process of ``relaax-actor``: it makes an environment, and plays."""

import importlib.util
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from relaax.client.connector import Backoff
from relaax.client.gymnasium_factory import Environment, EnvironmentFactory, GymnasiumFactory
from relaax.client.gymnasium_tasks import EpisodeRecorder, SingleEnvironmentTask
from relaax.client.run_options import RunnerOptions, VideoOptions
from relaax.client.seeds import seeds_of_this_program
from relaax.client.simulator import RunObserver, RunOutcome, RunResult
from relaax.client.transport import connecting_by
from relaax.compat.surreal.actor import limited
from relaax.compat.surreal.session import TRAINING
from relaax.configuration import ActorOptions, load_actor
from relaax.configuration.access import begin_access
from relaax.errors import ConfigurationError
from relaax.net.listening import allow_many_files
from relaax.server.actor.surreal import play_surreal
from relaax.server.actor.wiring import EVALUATIONS, ActorParts, algorithm_of
from relaax.telemetry.kept_counts import DELIVERED, DROPPED, TAKEN, KeptCounts
from relaax.telemetry.logs import show_name, start_logging
from relaax.telemetry.operators.certificates import Certificates

#: The end of a Python file's name; a class of the user's follows it.
_FILE = ".py"

#: Clients need an address for their messages; none is connected to.
_THIS_PROCESS = "localhost:1"


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


def video_of(options: ActorOptions) -> VideoOptions | None:
    """Return which episodes of the first actor are recorded, if any are."""
    if options.record_video is None:
        return None
    return VideoOptions(options.record_video, options.record_every, options.max_videos)


@dataclass(frozen=True)
class ActorTask:
    """Plays in one environment, with the actor that a command line asks for."""

    arguments: tuple[str, ...]

    def __call__(self, index: int, report: RunObserver) -> RunResult:
        """Play until the training is over, or all episodes are."""
        configuration = load_actor(self.arguments)
        options = configuration.options
        start_logging(options.log_level, options.log_file, f"relaax-actor {index}")
        access = begin_access(options, listens=False)
        allow_many_files()
        show_name()
        kept = KeptCounts([TAKEN, DELIVERED, DROPPED]).row()
        algorithm, config = algorithm_of(configuration)
        with ExitStack() as resources:
            if index == 0:  # the others of this command would report the same
                resources.enter_context(closing(Certificates(access.tls)))
            parts = ActorParts(algorithm, config, options, index, kept, resources, report.restarts)
            if algorithm.has_actor:
                make = partial(_recorded_environment, options, index)
                return play_surreal(parts, make, report)
            worker = parts.worker(configuration.algorithm.directory.name)
            with connecting_by(worker):
                return _play(options, index, report)


def _play(options: ActorOptions, index: int, report: RunObserver) -> RunResult:
    """Play as a client of the worker in this process."""
    evaluation = None if options.mode == TRAINING else EVALUATIONS[options.mode]
    run = RunnerOptions(
        rlx_server=_THIS_PROCESS,
        env=str(options.env),
        count=options.actors,
        episodes=None if options.episodes is None else options.episodes * options.actors,
        backoff=Backoff(attempts=1),
        evaluate=evaluation,
        seeds=seeds_of_this_program(options.seed, evaluation is not None),
        video=video_of(options),
    )
    result = SingleEnvironmentTask(run, partial(_limited_environment, options))(index, report)
    if result.outcome is RunOutcome.TRAINING_OVER:
        return RunResult(RunOutcome.FINISHED, result.message)
    return result


def _limited_environment(options: ActorOptions) -> Environment:
    return limited(_environment(options), options.limit_episode_length)


def _recorded_environment(options: ActorOptions, index: int) -> Environment:
    """Return the environment of actor ``index``; the first one's may be recorded."""
    environment, video = _environment(options), video_of(options)
    if video is None or index > 0:
        return environment
    return EpisodeRecorder(environment, video, str(options.env))


def _environment(options: ActorOptions) -> Environment:
    env, kwargs = str(options.env), options.env_kwargs
    if options.record_video is not None and not names_class(env):
        kwargs = {"render_mode": "rgb_array", **kwargs}
    return environment_factory(env, kwargs)()

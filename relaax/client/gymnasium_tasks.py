"""The task of a process of Gymnasium's environments: makes them, connects and plays."""

import contextlib
import time
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

from gymnasium.error import DependencyNotInstalled
from gymnasium.wrappers import RecordVideo

from relaax.client.environment_runner import GymnasiumSimulator
from relaax.client.gymnasium_actions import action_space_as_json
from relaax.client.gymnasium_factory import (
    Environment,
    EnvironmentFactory,
    Environments,
    VectorEnvironmentFactory,
)
from relaax.client.gymnasium_observations import observation_space_as_json
from relaax.client.restarting_environments import restarting
from relaax.client.run_options import RunnerOptions, VideoOptions
from relaax.client.run_result import RunResult
from relaax.client.simulator import RunObserver
from relaax.client.simulator_task import SimulatorTask, unusable
from relaax.client.transport import is_in_one_process
from relaax.client.vector_client import VectorClient
from relaax.client.vector_runner import VectorRunner
from relaax.errors import ConfigurationError

#: Seeds of environments differ that were made again in processes that were started again.
_MOST_AGAIN = 1_000_000


class EpisodeRecorder(RecordVideo[Any, Any]):
    """Records every so many episodes of ``environment``, one file each, and removes old files.

    A file is written when the next episode starts, or when the environment is closed. Frames are
    kept in memory until then. The file's name has the environment, the time of the program's start
    and the number of the episode.

    ConfigurationError for an environment that renders no pictures, for an unusable directory, and
    if the extra ``video`` is not installed.
    """

    def __init__(self, environment: Environment, options: VideoOptions, name: str) -> None:
        self._name = "".join(c if c.isalnum() or c in "-." else "_" for c in name)
        self._options = options
        started = time.strftime("%Y%m%d-%H%M%S")
        try:
            with warnings.catch_warnings():
                # That there are videos of other runs: their names are others.
                warnings.filterwarnings("ignore", message=".*Overwriting existing videos")
                super().__init__(
                    environment,
                    str(options.directory),
                    episode_trigger=lambda episode: episode % options.every == 0,
                    name_prefix=f"{self._name}-{started}",
                    gc_trigger=None,
                )
        except DependencyNotInstalled as error:
            raise ConfigurationError(
                "--record-video needs the extra video: pip install 'relaax[video]'"
            ) from error
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"--record-video: {error}") from error

    def stop_recording(self) -> None:
        """Write the file, and remove the oldest ones of this environment beyond the maximum."""
        super().stop_recording()
        found = self._options.directory.glob(f"{self._name}-*-episode-*.mp4")
        oldest_first = sorted(found, key=lambda path: path.stat().st_mtime_ns)
        for path in oldest_first[: -self._options.most]:
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class SingleEnvironmentTask:
    """Plays one environment on a connection."""

    options: RunnerOptions
    make_environment: EnvironmentFactory

    def __call__(self, index: int, report: RunObserver) -> RunResult:
        """Play the share of process ``index``."""
        return SimulatorTask(self.options, partial(self._simulator, index, report))(index, report)

    def _simulator(self, index: int, report: RunObserver, seed: int | None) -> GymnasiumSimulator:
        return GymnasiumSimulator(self._made(index), self.options.env, seed, report)

    def _made(self, index: int) -> Environment:
        """Return the environment of process ``index``; the first one may be recorded."""
        environment, video = self.make_environment(), self.options.video
        if video is None or index > 0:
            return environment
        return EpisodeRecorder(environment, video, self.options.env)


@dataclass(frozen=True)
class VectorEnvironmentsTask:
    """Plays several environments on one connection."""

    options: RunnerOptions
    factory: VectorEnvironmentFactory

    def __call__(self, index: int, report: RunObserver) -> RunResult:
        """Play the share of process ``index``."""
        options = self.options
        numbers = options.connections[index]
        report.environment_begins()
        try:
            environments = self._made(numbers, report)
        except Exception as error:  # an environment may raise anything; the parent prints it
            if report.restarts:
                raise
            return unusable(options.env, error)
        report.environment_returned()
        seeds = [options.seeds.of(number, _MOST_AGAIN * report.restarts) for number in numbers]
        observed, acted = environments.single_observation_space, environments.single_action_space
        with contextlib.ExitStack() as open_ones:
            open_ones.enter_context(contextlib.closing(environments))
            try:
                client = VectorClient(
                    options.rlx_server,
                    len(numbers),
                    reconnect=options.backoff,
                    environment=options.env,
                    observation_space=observation_space_as_json(observed),
                    action_space=action_space_as_json(acted),
                    evaluate=options.evaluate,
                )
                open_ones.enter_context(client)
                runner = VectorRunner(environments, client, seed=seeds, observer=report)
            except ConfigurationError as error:
                return unusable(options.env, error)
            return runner.run(options.episodes_of(index, report.episodes_before))

    def _made(self, numbers: range, report: RunObserver) -> Environments:
        """Return environments that are made again if they fail."""
        options = self.options
        environments = self.factory.vector(len(numbers))
        if is_in_one_process():  # a debugger wants to see the failure
            return environments

        def seed(place: int, again: int) -> int | None:
            return options.seeds.of(numbers[place], _MOST_AGAIN * report.restarts + again)

        names = [options.name_of(number) for number in numbers]
        return restarting(environments, names, seed, report)

"""Gymnasium environments as simulators, and the task of a process that plays them."""

import contextlib
import time
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

from gymnasium.error import DependencyNotInstalled
from gymnasium.wrappers import RecordVideo

from relaax.client.action_masks import MaskReader
from relaax.client.checks import single_flag, single_number
from relaax.client.episode_info import EpisodeInfoReader
from relaax.client.gymnasium_actions import (
    ExecutedActionReader,
    action_decoder,
    action_space_as_json,
)
from relaax.client.gymnasium_edges import keep_observations
from relaax.client.gymnasium_factory import (
    Environment,
    EnvironmentFactory,
    Environments,
    VectorEnvironmentFactory,
)
from relaax.client.gymnasium_observations import observation_space_as_json, state_encoder
from relaax.client.restarting_environments import restarting
from relaax.client.rlx_client import Client
from relaax.client.run_options import RunnerOptions, VideoOptions
from relaax.client.simulator import RunObserver, RunResult, Step
from relaax.client.simulator_runner import SimulatorRunner
from relaax.client.simulator_task import SimulatorTask, made, naming
from relaax.client.transport import is_in_one_process
from relaax.client.vector_client import VectorClient
from relaax.client.vector_runner import VectorRunner
from relaax.errors import ConfigurationError


class GymnasiumSimulator:
    """A Gymnasium environment as a simulator; the first episode gets ``seed``.

    ConfigurationError when there is something in its spaces that cannot be sent; ``apply`` raises
    ``UnusableAction`` when the server's actions do not fit the environment.
    """

    def __init__(
        self,
        environment: Environment,
        name: str,
        seed: int | None,
        observer: RunObserver | None = None,
    ) -> None:
        self.name = name
        self.observation_space: dict[str, Any] | None = observation_space_as_json(
            environment.observation_space
        )
        self.action_space: dict[str, Any] | None = action_space_as_json(environment.action_space)
        self._environment = keep_observations(environment)
        self._seed = seed
        self._masks = MaskReader((observer or RunObserver()).on_doubt)
        self._encode = state_encoder(environment.observation_space)
        self._decode = action_decoder(environment.action_space)
        self._executed = ExecutedActionReader(environment.action_space)
        self._numbers = EpisodeInfoReader((observer or RunObserver()).on_doubt)

    def restart(self) -> Any:
        """Start an episode and return its first state."""
        observation, info = self._environment.reset(seed=self._seed)
        self._seed = None
        return self._masks.beside(self._encode(observation), info)

    def apply(self, action: Any) -> Step:
        """Make a step."""
        made = self._decode(action)
        observation, reward, terminated, truncated, info = self._environment.step(made)
        is_terminated = single_flag("terminated", terminated)
        is_truncated = single_flag("truncated", truncated)
        executed = self._executed.of_one(info, made, action)
        state = self._encode(observation)
        return Step(
            single_number("the reward", reward),
            state if is_terminated else self._masks.beside(state, info),
            is_terminated,
            is_truncated,
            executed,
            self._numbers.of(info) if is_terminated or is_truncated else {},
        )

    def close(self) -> None:
        """Close the environment."""
        self._environment.close()


class GymnasiumRunner(SimulatorRunner):
    """Plays episodes of one environment for as long as the server answers.

    The first ``env.reset`` gets ``seed``.
    """

    def __init__(
        self,
        environment: Environment,
        client: Client,
        *,
        seed: int | None = None,
        observer: RunObserver | None = None,
    ) -> None:
        simulator = GymnasiumSimulator(environment, type(environment).__name__, seed, observer)
        super().__init__(simulator, client, observer=observer)


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
        seeds = [options.seeds.of(number, _MOST_AGAIN * report.restarts) for number in numbers]
        with naming(options.env), contextlib.ExitStack() as open_ones:
            environments = made(partial(self._made, numbers, report), report)
            open_ones.enter_context(contextlib.closing(environments))
            client = VectorClient(
                options.rlx_server,
                len(numbers),
                reconnect=options.backoff,
                environment=options.env,
                observation_space=observation_space_as_json(environments.single_observation_space),
                action_space=action_space_as_json(environments.single_action_space),
                evaluate=options.evaluate,
            )
            open_ones.enter_context(client)
            runner = VectorRunner(environments, client, seed=seeds, observer=report)
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

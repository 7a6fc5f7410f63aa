"""Drives Gymnasium environments through an RLX client; also a command.

    python -m relaax.client.gymnasium_runner --rlx-server localhost:7001 --env CartPole-v1 --count 4

The worker on the server reports an episode's reward, length and time; what only this side can know
is reported from here: 'act latency on client', in seconds, with the network.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from relaax.client.fleet import (
    Ended,
    MemberFunction,
    MemberReport,
    Outcome,
    ended_by,
    run_fleet,
)
from relaax.client.gymnasium_spaces import action_decoder, space_as_json, state_encoder
from relaax.client.observer import EpisodeSummary, RunObserver
from relaax.client.rlx_client import Client, Failure
from relaax.client.runner_options import RunnerOptions, parse_options
from relaax.client.vector_client import VectorClient
from relaax.client.vector_runner import Environments, VectorRunner
from relaax.errors import ConfigurationError

Environment: TypeAlias = gymnasium.Env[Any, Any]
EnvironmentFactory: TypeAlias = Callable[[], Environment]
StopCondition: TypeAlias = Callable[[], bool] | threading.Event


class GymnasiumRunner:
    """Plays episodes of one environment for as long as the server answers.

    The first ``env.reset`` gets ``seed``. A ``Failure`` in the middle of an episode restarts the
    episode; a ``Failure`` of ``client.init`` ends the run, so give the client a ``Backoff``.
    ``stop`` is looked at before each step.
    """

    def __init__(
        self,
        environment: Environment,
        client: Client,
        *,
        seed: int | None = None,
        observer: RunObserver | None = None,
        stop: StopCondition | None = None,
    ) -> None:
        self._environment = environment
        self._client = client
        self._seed = seed
        self._observer = observer or RunObserver()
        self._is_stopped = _as_callable(stop)
        self._encode = state_encoder(environment.observation_space)
        self._decode = action_decoder(environment.action_space)
        self._was_connected = False
        self._is_connected = False

    def run(self, episodes: int | None = None) -> Ended:
        """Play until ``episodes`` are over, the stop condition holds or the server is gone.

        Raises ``UnusableAction`` when the server's actions do not fit the environment.
        """
        played = 0
        while episodes is None or played < episodes:
            episode = _Episode()
            state = self._reset_environment()
            try:
                action = self._start(state)
            except Failure as failure:
                return self._ended_by(failure)
            try:
                is_over = self._play(episode, action)
            except Failure:
                self._is_connected = False
                self._observer.on_disconnected()
                continue
            if not is_over:
                return Ended(Outcome.STOPPED, "stopped")
            self._report(episode)
            played += 1
        return Ended(Outcome.FINISHED, f"{played} episodes are over")

    def _reset_environment(self) -> Any:
        observation, _ = self._environment.reset(seed=self._seed)
        self._seed = None
        return self._encode(observation)

    def _start(self, state: Any) -> Any:
        action = self._client.init(state)
        self._was_connected = True
        if not self._is_connected:
            self._is_connected = True
            self._observer.on_connected()
        return action

    def _ended_by(self, failure: Failure) -> Ended:
        if self._is_stopped():
            return Ended(Outcome.STOPPED, "stopped")
        return ended_by(failure, self._was_connected)

    def _play(self, episode: "_Episode", action: Any) -> bool:
        """Play an episode; return whether it came to its end."""
        while not self._is_stopped():
            observation, reward, is_terminated, is_truncated, _ = self._environment.step(
                self._decode(action)
            )
            reward = float(reward)
            episode.add_step(reward)
            self._observer.on_step()
            if is_terminated:
                self._client.reset(reward)
                return True
            state = self._encode(observation)
            if is_truncated:
                self._client.truncate(reward, state)
                return True
            asked = time.perf_counter()
            action = self._client.send(reward, state)
            episode.add_latency(time.perf_counter() - asked)
        return False

    def _report(self, episode: "_Episode") -> None:
        summary = episode.summary()
        if episode.sends:
            latency_s = episode.latency_s / episode.sends
            self._client.metrics().scalar("act latency on client", latency_s)
        self._observer.on_episode(summary)


@dataclass
class _Episode:
    """What is counted while an episode is played."""

    began: float = field(default_factory=time.perf_counter)
    episode_return: float = 0.0
    length: int = 0
    sends: int = 0
    latency_s: float = 0.0

    def add_step(self, reward: float) -> None:
        self.episode_return += reward
        self.length += 1

    def add_latency(self, latency_s: float) -> None:
        self.sends += 1
        self.latency_s += latency_s

    def summary(self) -> EpisodeSummary:
        seconds = time.perf_counter() - self.began
        return EpisodeSummary(self.episode_return, self.length, seconds)


@dataclass(frozen=True)
class GymnasiumFactory:
    """Makes the environment that Gymnasium has registered under ``env_id``."""

    env_id: str
    kwargs: dict[str, Any]

    def __call__(self) -> Environment:
        """Return a new environment."""
        return gymnasium.make(self.env_id, **self.kwargs)

    def vector(self, count: int) -> Environments:
        """Return ``count`` environments that step together.

        They are Gymnasium's own vector environment where there is one for the id.
        """
        spec = gymnasium.spec(self.env_id)
        if spec.vector_entry_point is not None:
            return gymnasium.make_vec(self.env_id, num_envs=count, **self.kwargs)
        return SyncVectorEnv([self] * count, autoreset_mode=AutoresetMode.SAME_STEP)


class VectorEnvironmentFactory(Protocol):
    """What can make several environments at once."""

    def vector(self, count: int) -> Environments:
        """Return ``count`` environments that step together."""


@dataclass(frozen=True)
class _VectorMember:
    """One process of the fleet: several environments on one connection."""

    options: RunnerOptions
    factory: VectorEnvironmentFactory

    def __call__(self, index: int, report: MemberReport) -> Ended:
        options = self.options
        numbers = options.connections[index]
        try:
            environments = self.factory.vector(len(numbers))
        except Exception as error:  # whatever a stranger's environment raises: the user must see it
            return Ended(Outcome.UNUSABLE, f"{options.env}: {error}")
        with (
            contextlib.closing(environments),
            VectorClient(
                options.rlx_server,
                len(numbers),
                reconnect=options.backoff,
                environment=options.env,
                observation_space=space_as_json(environments.single_observation_space),
                action_space=space_as_json(environments.single_action_space),
            ) as client,
        ):
            seed = None if options.seed is None else options.seed + numbers[0]
            try:
                runner = VectorRunner(environments, client, seed=seed, observer=report)
            except ConfigurationError as error:
                return Ended(Outcome.UNUSABLE, f"{options.env}: {error}")
            return runner.run(options.episodes_of(index))


@dataclass(frozen=True)
class _Member:
    """One process of the fleet: an environment and its client."""

    options: RunnerOptions
    make_environment: EnvironmentFactory

    def __call__(self, index: int, report: MemberReport) -> Ended:
        options = self.options
        try:
            environment = self.make_environment()
        except Exception as error:  # whatever a stranger's environment raises: the user must see it
            return Ended(Outcome.UNUSABLE, f"{options.env}: {error}")
        seed = None if options.seed is None else options.seed + index
        with (
            environment,
            Client(
                options.rlx_server,
                reconnect=options.backoff,
                environment=options.env,
                observation_space=space_as_json(environment.observation_space),
                action_space=space_as_json(environment.action_space),
            ) as client,
        ):
            try:
                runner = GymnasiumRunner(environment, client, seed=seed, observer=report)
            except ConfigurationError as error:
                return Ended(Outcome.UNUSABLE, f"{options.env}: {error}")
            return runner.run(options.episodes_of(index))


def _as_callable(stop: StopCondition | None) -> Callable[[], bool]:
    if stop is None:
        return lambda: False
    return stop.is_set if isinstance(stop, threading.Event) else stop


def run_command(options: RunnerOptions, make_environment: EnvironmentFactory) -> int:
    """Run the environments, a process each, and return the exit status (see ``run_fleet``)."""
    if options.per_connection == 1:
        member: MemberFunction = _Member(options, make_environment)
    elif hasattr(make_environment, "vector"):
        member = _VectorMember(options, make_environment)
    else:
        raise ConfigurationError("--per-connection needs a factory with a method 'vector'")
    return run_fleet(member, [len(c) for c in options.connections], options.rlx_server)


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    options = parse_options(sys.argv[1:] if argv is None else argv)
    return run_command(options, GymnasiumFactory(options.env, options.env_kwargs))


if __name__ == "__main__":
    sys.exit(main())

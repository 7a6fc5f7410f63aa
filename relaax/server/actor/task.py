"""The task of a process of ``relaax-actor``: it makes an environment, and plays."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial

from gymnasium.vector import AutoresetMode, SyncVectorEnv

from relaax.address import Address
from relaax.client.connector import Backoff
from relaax.client.gymnasium_factory import Environment, Environments
from relaax.client.gymnasium_tasks import (
    EpisodeRecorder,
    SingleEnvironmentTask,
    VectorEnvironmentsTask,
)
from relaax.client.run_options import RunnerOptions, VideoOptions
from relaax.client.seeds import seeds_of_this_program
from relaax.client.simulator import RunObserver, RunResult
from relaax.client.simulator_task import naming
from relaax.client.transport import connecting_by
from relaax.compat.surreal.actor import limited
from relaax.compat.surreal.session import TRAINING
from relaax.configuration import ActorConfiguration, ActorOptions, load_actor
from relaax.configuration.access import begin_access
from relaax.configuration.actor_agents import ActorAgents, read_agents
from relaax.errors import ConfigurationError
from relaax.net.listening import allow_many_files
from relaax.server.actor.environments import agents_factory, environment_factory, names_class
from relaax.server.actor.groups import THIS_PROCESS, finished, load_group, play_groups, samples_of
from relaax.server.actor.latency import latency_figures
from relaax.server.actor.stages import StagedEnvironment, StageSource, stage_source
from relaax.server.actor.surreal import play_surreal
from relaax.server.actor.wiring import EVALUATIONS, ActorParts, Shared, SinkWrapper, algorithm_of
from relaax.telemetry.kept_counts import DELIVERED, DROPPED, TAKEN, KeptCounts
from relaax.telemetry.logs import show_name, start_logging
from relaax.telemetry.operators import Metric, OperatorPort, counter, operator_listener
from relaax.telemetry.training import worker_runs


def video_of(options: ActorOptions) -> VideoOptions | None:
    """Return which episodes of the first actor are recorded, if any are."""
    if options.record_video is None:
        return None
    return VideoOptions(options.record_video, options.record_every, options.max_videos)


@dataclass(frozen=True)
class ActorTask:
    """Plays in an environment, or in a ring of them, as a command line asks for."""

    arguments: tuple[str, ...]

    def __call__(self, index: int, report: RunObserver) -> RunResult:
        """Play until a training is over, or all episodes are."""
        configuration = load_actor(self.arguments)
        options = configuration.options
        start_logging(options.log_level, options.log_file, f"relaax-actor {index}")
        begin_access(options, listens=options.http_bind is not None)
        allow_many_files()
        show_name()
        with ExitStack() as resources:
            operators = resources.enter_context(closing(_operators(options, index)))
            server = options.curriculum_server
            stage = None if server is None else stage_source(str(server), resources)
            shared = Shared(operators, stage, worker_runs(options.wandb_runs, resources))
            operators.show(lambda: _figures(report, shared))
            if options.agents is None:
                return _play_one(configuration, index, report, resources, shared)
            agents = read_agents(options.agents)
            return self._play_groups(agents, options, index, report, resources, shared)

    def _play_groups(
        self,
        agents: ActorAgents,
        options: ActorOptions,
        index: int,
        report: RunObserver,
        resources: ExitStack,
        shared: Shared,
    ) -> RunResult:
        """Play with the policy of each agent's group."""
        factory = agents_factory(str(options.env), options.env_kwargs)
        if factory is None:
            with naming(str(options.env)):
                (number,) = agents.members([""])
            configuration = load_group(agents, number, options)
            wrap = samples_of(agents, number, 1, configuration)
            ring_size = agents.ring_size
            return _play_one(configuration, index, report, resources, shared, ring_size, wrap)
        return play_groups(agents, options, factory, index, report, resources, shared)


def _operators(options: ActorOptions, index: int) -> OperatorPort:
    """Return the port for operators of a process, the ``index``-th of its command from 0."""
    first = options.http_bind
    listener = operator_listener(first and Address(first.host, first.port + index))
    # The others of this command would report the same certificates.
    return OperatorPort(listener, has_certificates=index == 0)


def _figures(report: RunObserver, shared: Shared) -> Iterator[Metric]:
    """Yield what a process shows operators."""
    yield counter("steps", "Steps that its environments have taken", report.steps)
    yield counter("episodes", "Episodes that have ended", report.episodes)
    yield from latency_figures(shared.latencies)


def _play_one(
    configuration: ActorConfiguration,
    index: int,
    report: RunObserver,
    resources: ExitStack,
    shared: Shared,
    ring_size: int = 1,
    wrap: SinkWrapper = lambda sink: sink,
) -> RunResult:
    """Play a ring of environments with one agent each."""
    options = configuration.options
    kept = KeptCounts([TAKEN, DELIVERED, DROPPED]).row()
    algorithm, config = algorithm_of(configuration)
    parts = ActorParts(
        algorithm,
        config,
        options,
        index,
        kept,
        resources,
        shared,
        report,
        ring_size,
        wrap,
        configuration.run_name,
    )
    name = configuration.algorithm.directory.name
    if algorithm.has_actor and ring_size > 1:
        raise ConfigurationError(f"ring_size: {name} has an actor of its own, which plays one game")
    if algorithm.has_actor:
        make = partial(_recorded_environment, options, index, shared.stage)
        return play_surreal(parts, make, report)
    with connecting_by(parts.worker(name)):
        return _play(options, index, report, ring_size, shared.stage)


def _play(
    options: ActorOptions,
    index: int,
    report: RunObserver,
    ring_size: int,
    stage: StageSource | None,
) -> RunResult:
    """Play as a client of the worker in this process."""
    evaluation = None if options.mode == TRAINING else EVALUATIONS[options.mode]
    run = RunnerOptions(
        rlx_server=THIS_PROCESS,
        env=str(options.env),
        count=options.actors * ring_size,
        per_connection=ring_size,
        episodes=None if options.episodes is None else options.episodes * options.actors,
        backoff=Backoff(attempts=1),
        evaluate=evaluation,
        seeds=seeds_of_this_program(options.seed, evaluation is not None),
        video=video_of(options),
    )
    if ring_size > 1:
        return finished(VectorEnvironmentsTask(run, RingFactory(options, stage))(index, report))
    make = partial(_limited_environment, options, stage)
    return finished(SingleEnvironmentTask(run, make)(index, report))


@dataclass(frozen=True)
class RingFactory:
    """Makes the environments of a ring, which step together."""

    options: ActorOptions
    stage: StageSource | None = None

    def vector(self, count: int) -> Environments:
        """Return so many environments."""
        make = partial(_limited_environment, self.options, self.stage)
        return SyncVectorEnv([make] * count, autoreset_mode=AutoresetMode.SAME_STEP)


def _limited_environment(options: ActorOptions, stage: StageSource | None) -> Environment:
    return limited(_environment(options, stage), options.limit_episode_length)


def _recorded_environment(
    options: ActorOptions, index: int, stage: StageSource | None
) -> Environment:
    """Return the environment of actor ``index``; the first one's may be recorded."""
    environment, video = _environment(options, stage), video_of(options)
    if video is None or index > 0:
        return environment
    return EpisodeRecorder(environment, video, str(options.env))


def _environment(options: ActorOptions, stage: StageSource | None) -> Environment:
    env, kwargs = str(options.env), options.env_kwargs
    if options.record_video is not None and not names_class(env):
        kwargs = {"render_mode": "rgb_array", **kwargs}
    environment = environment_factory(env, kwargs)()
    return environment if stage is None else StagedEnvironment(environment, stage)

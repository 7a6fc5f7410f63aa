"""Makes the parts of an actor's process: the one place that reads its configuration."""

import logging
import secrets
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from relaax.acting.parameter_client import ParameterClient, PeriodicTracker, PullRule
from relaax.algorithm_base import ConfigBase, Evaluation, ExperienceSink, ParameterLink, Phase
from relaax.client.seeds import seeds_of_this_program
from relaax.client.simulator import RunObserver
from relaax.compat.surreal.actor import Actor
from relaax.compat.surreal.session import (
    EVAL_DETERMINISTIC,
    EVAL_STOCHASTIC,
    TRAINING,
    ActorSession,
)
from relaax.configuration import ActorConfiguration, ActorOptions
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.configuration.announced_spaces import Doubts
from relaax.configuration.commands import ACTOR
from relaax.errors import ConfigurationError
from relaax.parameters.training_watch import TrainingWatch, wait_for_version
from relaax.processes.identifiers import LATEST
from relaax.server.actor.latency import Latency
from relaax.server.actor.pulled_bridge import PulledBridge
from relaax.server.actor.sinks import experience_of
from relaax.server.actor.stages import StageSource
from relaax.server.rlx_server.places import OwnPlaces, PlaceTable
from relaax.server.rlx_server.tally import private_row
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.memory_worker import MemoryWorker, settings_in_memory
from relaax.server.rlx_server.worker.process import agents_of
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.steps import Steps
from relaax.telemetry.kept_counts import CountsRow
from relaax.telemetry.metrics import Metrics, NullMetrics
from relaax.telemetry.operators import OperatorPort
from relaax.telemetry.operators.port import away

#: The evaluation of the modes in which nothing is learnt.
EVALUATIONS = {EVAL_DETERMINISTIC: Evaluation.DETERMINISTIC, EVAL_STOCHASTIC: Evaluation.STOCHASTIC}


@dataclass(frozen=True)
class Shared:
    """Parts that all groups of agents of a process share."""

    operators: OperatorPort
    #: Environments are reset with this stage, where there is one.
    stage: StageSource | None = None
    #: Metrics are stored there, too, where there is such a place.
    copies: Metrics | None = None
    #: Of the agents that train, by the name of their policy's file.
    latencies: defaultdict[str, list[Latency]] = field(default_factory=lambda: defaultdict(list))


#: Returns a sink that hands on to a given one.
SinkWrapper: TypeAlias = Callable[[ExperienceSink[Any]], ExperienceSink[Any]]


def algorithm_of(configuration: ActorConfiguration) -> tuple[Algorithm, ConfigBase]:
    """Return the algorithm and its typed configuration; ConfigurationError without a learner."""
    section = configuration.algorithm
    algorithm = load_algorithm(section.directory)
    config = make_config(algorithm, section)
    algorithm.require_learner(config, ACTOR.name)
    if configuration.options.deterministic:
        algorithm.require_deterministic_actions()
    if configuration.options.inference_servers is not None:
        algorithm.require_remote_inference(config)
    return algorithm, config


class ActorPlaces(OwnPlaces):
    """The places of an actor's ``environments`` among all that train.

    They follow one another, from the actor's ``number`` times their count, until the number among
    all of the training is known.
    """

    def __init__(self, number: int, environments: int = 1) -> None:
        super().__init__(PlaceTable(most=environments, is_shared=False), owner=1)
        self._number = number
        self.in_training = lambda place: self._number * environments + place

    def note(self, number: int) -> None:
        """Take the parameter server's answer."""
        self._number = number


class ParameterFetches:
    """Fetches an agent's parameters by ``rule``, and once at the start.

    Where the agent ``evaluates``, they are fetched before each episode, which is played with one
    version. ``begins`` says whether an episode begins with steps: where an environment has several
    agents, its reset counts, and not the first turn of each.
    """

    def __init__(
        self,
        rule: PullRule,
        *,
        evaluates: bool,
        begins: Callable[[Steps], bool] = lambda steps: bool(steps.starts.any()),
    ) -> None:
        self._goes_by_episodes = evaluates or rule.mode == "episode"
        self._begins = begins
        self._tracker = PeriodicTracker(1) if evaluates else rule.tracker()

    def begin(self, bridge: PulledBridge, client: ParameterClient) -> None:
        """Fetch for ``bridge``, by ``client``, from now on."""
        self._bridge, self._client = bridge, client
        self.fetch()

    def before(self, steps: Steps) -> None:
        """Fetch, if it is time, before ``steps`` are answered."""
        counts = self._begins(steps) if self._goes_by_episodes else steps.actions
        if counts and self._tracker.track_increment():
            self.fetch()

    def fetch(self) -> None:
        """Let the agent have what is newest; it keeps what it has where no answer comes in time."""
        values = self._client.fetch_parameter_with_info()
        if values is not None:
            self._bridge.use(values)


@dataclass
class ActorParts:
    """The parts of actor ``index``, which ``resources`` will close.

    ``kept`` counts its steps by their fate; ``report`` is that of its process. It acts for so
    many ``environments``, of which each agent is one. ``wrap`` returns a sink that is put before
    that of its steps. ``policy`` is its name for operators.
    """

    algorithm: Algorithm
    config: ConfigBase
    options: ActorOptions
    index: int
    kept: CountsRow
    resources: ExitStack
    shared: Shared
    report: RunObserver = field(default_factory=RunObserver)
    environments: int = 1
    wrap: SinkWrapper = lambda sink: sink
    policy: str = ""

    def __post_init__(self) -> None:
        options, self.doubts = self.options, doubts_of(self.index)
        self.rule = PullRule(options.fetch_parameter_mode, options.fetch_parameter_interval)
        self.seed = _seed(options, self.index, self.report.restarts)
        control, address = self.algorithm.BridgeControl(), str(options.parameter_server)
        self.bridge: ParameterLink = self.resources.enter_context(
            closing(control.parameter_server_stub(address))
        )
        if self.shared.copies is not None:
            self.bridge.copy_metrics_to(self.shared.copies)
        self._place = ActorPlaces(self.index, self.environments)
        note = self._place.note if options.mode == TRAINING else None
        watch = TrainingWatch(self.bridge, lambda: 0, on_place=note)
        self._watch = self.resources.enter_context(closing(watch))
        self.shared.operators.ready_if(away(watch.silence_s))
        if self.options.policy_identifier != LATEST:
            self.bridge.follow(self.options.policy_identifier)
            wait_for_version(self.bridge, self.is_over)
        if self.options.eval_stream is not None:
            self.bridge.report_to(self.options.eval_stream)

    def worker(
        self, algorithm_name: str, begins: Callable[[Steps], bool] | None = None
    ) -> MemoryWorker:
        """Return a worker with the algorithm's agent, made when its client has connected.

        ``begins`` as in ``ParameterFetches``.
        """
        settings = settings_in_memory(
            self.algorithm,
            self.config,
            max_frame_bytes=None,
            max_environments=self.environments,
            algorithm_name=algorithm_name,
            doubts=self.doubts,
            inference_servers=[str(each) for each in self.options.inference_servers or ()],
        )
        if settings.inference_servers:
            return self._served_worker(settings)
        more = {} if begins is None else {"begins": begins}
        evaluates = self.options.fetches_for_each_evaluation
        fetches = ParameterFetches(self.rule, evaluates=evaluates, **more)

        def make_agents() -> Agents:
            pulled = PulledBridge(self.bridge)
            known = pulled.pull().version
            client = self.resources.enter_context(
                closing(ParameterClient(self.bridge, known=known))
            )
            agents = agents_of(
                settings,
                pulled,
                self.seed,
                partial(self._experience, fetches.fetch),
                is_shared=False,
                deterministic=self.options.deterministic,
            )
            fetches.begin(pulled, client)
            return self._measured(agents)

        worker = MemoryWorker(
            settings,
            make_agents,
            self.is_over,
            private_row(self.kept, self._place),
            before=fetches.before,
        )
        return self.resources.enter_context(closing(worker))

    def _served_worker(self, settings: WorkerSettings) -> MemoryWorker:
        """Return a worker that fetches no parameters: inference servers choose."""

        def make_agents() -> Agents:
            agents = agents_of(
                settings,
                self.bridge,
                self.seed,
                self._experience,
                is_shared=False,
                goes_on=lambda: not self.is_over(),
                deterministic=self.options.deterministic,
            )
            return self._measured(agents)

        row = private_row(self.kept, self._place)
        worker = MemoryWorker(settings, make_agents, self.is_over, row)
        return self.resources.enter_context(closing(worker))

    def _measured(self, agents: Agents) -> Agents:
        """Return the agents, which are ready; the time of their steps is measured.

        TensorBoard shows the means of those that train.
        """
        metrics = self.bridge.metrics() if self.options.mode == TRAINING else NullMetrics()
        latency = Latency(metrics, lambda: self.report.environment_s)
        self.resources.callback(latency.close)
        agents.batch_agent.watch_choices(latency.chose)
        self.shared.latencies[self.policy].append(latency)
        self.shared.operators.begin()
        return agents

    def surreal_actor(self) -> Actor:
        """Return an actor of the algorithm's own class."""
        client = self.resources.enter_context(closing(ParameterClient(self.bridge)))
        session = ActorSession(
            parameters=client,
            experience=self._experience(),
            metrics=self.bridge.metrics(),
            pull_rule=self.rule,
            limit_episode_length=self.options.limit_episode_length,
            seed=self.seed,
            is_over=self.is_over,
        )
        self.resources.callback(session.experience.close)
        actor: Actor = self.algorithm.make_actor(
            self.config, session, self.index, self.options.mode
        )
        self.shared.operators.begin()
        return actor

    def is_over(self) -> bool:
        """Return whether the actor ends; an evaluating one lasts as long as values are served."""
        if self.options.mode == TRAINING:
            return self._watch.is_over
        return self._watch.phase is Phase.CLOSING

    def _experience(self, fetch: Callable[[], object] = lambda: None) -> ExperienceSink[Any]:
        """Return where the actor's steps go; ``fetch`` gets newer parameters."""
        spec = self.algorithm.replay_spec(self.config)
        if spec.paced_rollout is not None and self.rule.mode == "episode":
            raise ConfigurationError(
                "max_staleness: the next rollout of an episode may need newer parameters, which an "
                "actor that fetches them by episodes does not take: write "
                "--fetch-parameter-mode step (of an experiment: pull_interval_seconds)"
            )
        metrics = self.bridge.metrics()
        sink = experience_of(self.options, spec, metrics, self.kept, self.index, fetch)
        return self.wrap(sink)


def doubts_of(index: int) -> Doubts:
    """Return the log of doubts about the environment: the first actor's are those of all."""
    if index == 0:
        return Doubts(logging.getLogger(__name__))
    return Doubts(logging.Logger("silent", logging.CRITICAL))


def _seed(options: ActorOptions, index: int, restarts: int) -> int:
    """Return another number below 2**32 for each actor, and for each start of it."""
    if options.seed is None:
        return secrets.randbits(32)
    seeds = seeds_of_this_program(options.seed, evaluates=options.mode != TRAINING)
    return seeds.of(index, restarts) or 0

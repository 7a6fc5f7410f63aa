"""The exports of an algorithm's package, made of its builder."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from relaax.acting.agent import SingleAgent
from relaax.algorithm_base import (
    AgentBase,
    BatchAgentBase,
    ConfigBase,
    ExperienceSink,
    Learner,
    Metrics,
    ParameterLink,
    ParameterServerBase,
    Saver,
)
from relaax.algorithm_base.inference import Inference
from relaax.assembly.agents import make_actor, prepare_to_fork
from relaax.assembly.parts import MethodBuilder, ParameterParts
from relaax.assembly.placing import in_process
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.configuration.named_files import locate_algorithm
from relaax.parameters.averaging import Averager, AveragingService
from relaax.parameters.parameter_server import ParameterServer, ParameterService
from relaax.parameters.parameter_store import ParameterStore, Store
from relaax.parameters.published import PublishedParameters
from relaax.replay.specs import ReplaySpec

ConfigT = TypeVar("ConfigT", bound=ConfigBase)


class Assembly(Generic[ConfigT]):
    """Wires an algorithm of the parts that ``make_builder`` returns for a configuration.

    Its attributes are the names that a package exports::

        ParameterServer, Agent, make_batch_agent, make_learner, replay_spec = Assembly(Builder)
    """

    def __init__(self, make_builder: Callable[[ConfigT], MethodBuilder[Any]]) -> None:
        self._make_builder = make_builder

    def __iter__(self) -> Any:
        """Yield the exports in the order of the example."""
        yield from (
            self.parameter_server, self.agent, self.make_batch_agent, self.make_learner,
            self.replay_spec,
        )  # fmt: skip

    def parameter_server(
        self, config: ConfigT, saver: Saver, metrics: Metrics
    ) -> ParameterServerBase:
        """Return the owner of the parameters: moved by gradients, or published by a learner."""
        builder = self._make_builder(config)
        parts, recording = builder.parameters(), builder.experience()
        store: Store
        if parts.optimizer is None or (recording.worker is None and recording.is_published):
            store = PublishedParameters(parts.initial)
            service = ParameterService(store, metrics)
        else:
            store = ParameterStore(
                parts.initial,
                parts.optimizer,
                parts.learning_rate,
                parts.filters,
                None if parts.combine is None else parts.combine.make(partial(_report, metrics)),
            )
            service = _service(parts, store, metrics)
        return ParameterServer(
            store=store,
            service=service,
            saver=saver,
            fingerprint=parts.fingerprint,
            max_global_step=parts.max_global_step,
            learns=parts.learns,
            has_shards=parts.averaging is None,
            exploration=parts.exploration,
        )

    def agent(self, config: ConfigT, parameter_server: ParameterLink, seed: int = 0) -> AgentBase:
        """Return an agent of one environment, which learns before it chooses the next action."""
        actor = self.make_batch_agent(config, parameter_server, seed, learns_in_background=False)
        return SingleAgent(actor, parameter_server.metrics())

    def make_batch_agent(
        self,
        config: ConfigT,
        parameter_server: ParameterLink,
        seed: int,
        learns_in_background: bool,
        experience: ExperienceSink[Any] | None = None,
        inference: Inference | None = None,
        answers: bool = False,
        deterministic: bool = False,
    ) -> BatchAgentBase:
        """Return the agent of many environments; in the background it learns beside acting.

        ``experience`` takes its steps where a learner in a process of its own learns from them.
        ``inference`` chooses its actions where another process has the policies; one that
        ``answers`` chooses for other processes. A ``deterministic`` agent chooses without noise.
        """
        return make_actor(
            self._make_builder(config),
            parameter_server,
            seed,
            learns_in_background,
            experience,
            inference,
            answers,
            deterministic,
        )

    def make_learner(self, config: ConfigT, seed: int | None) -> Learner:
        """Return the learner of a process of its own."""
        prepare_to_fork()
        return in_process(self._make_builder(config), seed)

    def replay_spec(self, config: ConfigT) -> ReplaySpec:
        """Return the columns that are stored of a step, and the tables over them."""
        return self._make_builder(config).experience().spec()


def _service(parts: ParameterParts, store: ParameterStore, metrics: Metrics) -> ParameterService:
    if parts.averaging is None:
        return ParameterService(store, metrics)
    averaging = parts.averaging
    averager = Averager(store, averaging.count, averaging.timeout_s)
    return AveragingService(store, metrics, averager)


def _report(metrics: Metrics, dropped: int) -> None:
    metrics.scalar("parameter server/stale gradients", dropped)


def bundled(name: str) -> ModuleType:
    """Return the package of the algorithm ``name``; ConfigurationError for one that is not there.

    So an algorithm may have another one's builder, wherever its own folder is.
    """
    return load_algorithm(locate_algorithm({"name": name}, Path(__file__))).module

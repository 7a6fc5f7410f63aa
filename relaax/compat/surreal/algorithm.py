"""Makes an algorithm's package of Surreal's three classes."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import (
    DEFAULT,
    FloatVector,
    Input,
    Metrics,
    ParameterServerBase,
    Saver,
    Step,
)
from relaax.algorithm_base import Learner as AnyLearner
from relaax.compat.surreal.actor import Actor
from relaax.compat.surreal.buffers import Buffer
from relaax.compat.surreal.config import Config
from relaax.compat.surreal.experience import columns_of
from relaax.compat.surreal.module_dict import HasWeights, Module, ModuleDict
from relaax.compat.surreal.session import ActorMode, ActorSession
from relaax.learning.steps import schema_of
from relaax.parameters.parameter_server import ParameterServer, ParameterService
from relaax.parameters.published import PublishedParameters
from relaax.replay.specs import ReplaySpec
from relaax.replay.table import Sample

Array = npt.NDArray[Any]

#: A batch: arrays [N, ...] by name.
Batch: TypeAlias = Mapping[str, Array]

#: What ``learn`` may say: errors [N], from which priorities are made; numbers for TensorBoard.
Learnt: TypeAlias = Array | Mapping[str, float] | Step | None

#: The one table.
TABLE = "experience"

#: Added to an error, so that no experience has the priority 0 (Schaul et al. 2016, section 3.3).
_LEAST_PRIORITY = 1e-6

_MODULE, _ATTRIBUTE = "module/", "attribute/"


class Learner(AnyLearner):
    """Learns from batches of a buffer; ``relaax-learner`` publishes and saves what it has learnt.

    Derive from it, with ``learn`` and ``module_dict``. ``random`` draws what the learner draws.
    """

    def __init__(self, config: Config, seed: int | None) -> None:
        self.inputs = {TABLE: Input(config.settings.batch_size, self.prepare)}
        self.config = config
        self.random = np.random.default_rng(seed)

    @abstractmethod
    def learn(self, batch: Any) -> Learnt:
        """Learn from one batch, as ``preprocess_batch`` has made it.

        Return errors float [N], of which a prioritized buffer makes priorities, or numbers by name
        for TensorBoard; a ``Step`` has both.
        """

    @abstractmethod
    def module_dict(self) -> Mapping[str, Module]:
        """Return what actors act with, by name: as the actor's ``module_dict`` has it."""

    def checkpoint_attributes(self) -> Sequence[str]:
        """Return the names of attributes that are saved beside the modules: targets, optimisers.

        Each is an array, a number, a mapping of arrays by name, an optimiser of
        ``relaax.parameters.optimizers``, or has weights like a module.
        """
        return ()

    def prefetch_preprocess(self, batch: Batch) -> Batch:
        """Return what becomes of a batch as soon as it is drawn; other threads call it."""
        return batch

    def preprocess_batch(self, batch: Batch) -> Any:
        """Return a batch as ``learn`` takes it; other threads call it, after the hook before."""
        return batch

    def prepare(self, sample: Sample) -> Any:
        """Return the batch of a sample, with a column more, ``weight`` float32 [N].

        It is ``(N P(i))^-beta`` over the largest that there could be (Schaul et al. 2016, section
        3.4): 1 where all experiences are drawn alike.
        """
        ratios = sample.probabilities / sample.least_probability
        weights = (ratios ** -float(self.config.settings.beta)).astype(np.float32)
        return self.preprocess_batch(
            self.prefetch_preprocess({**sample.columns, "weight": weights})
        )

    def steps(self, batches: Mapping[str, Any]) -> Iterator[Step]:
        """See ``relaax.algorithm_base.Learner``."""
        learnt = self.learn(batches[TABLE])
        if isinstance(learnt, Step):
            yield learnt
        elif learnt is None:
            yield Step()
        elif isinstance(learnt, Mapping):
            yield Step(terms=learnt)
        else:
            priorities = np.abs(np.asarray(learnt, np.float64)) + _LEAST_PRIORITY
            yield Step(priorities={TABLE: priorities})

    def values(self) -> Mapping[str, FloatVector]:
        """See ``relaax.algorithm_base.Learner``."""
        return {DEFAULT: self._modules.vector()}

    def state(self) -> Mapping[str, Array]:
        """Return modules and attributes, by name."""
        found = {f"{_MODULE}{name}": part for name, part in self._modules.parameters().items()}
        for name in self.checkpoint_attributes():
            parts = _arrays_of(getattr(self, name))
            found |= {f"{_ATTRIBUTE}{name}{key}": part for key, part in parts.items()}
        return {name: part.copy() for name, part in found.items()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``."""
        self._modules.load({name: state[f"{_MODULE}{name}"] for name in self._modules.parameters()})
        for name in self.checkpoint_attributes():
            value = getattr(self, name)
            parts = {key: state[f"{_ATTRIBUTE}{name}{key}"] for key in _arrays_of(value)}
            setattr(self, name, _restored(value, parts))

    @cached_property
    def _modules(self) -> ModuleDict:
        """What ``module_dict`` returns, once the learner has been made."""
        return ModuleDict(self.module_dict())


@runtime_checkable
class _HasSlots(Protocol):
    """An optimiser, such as those of ``relaax.parameters.optimizers``."""

    def slots(self) -> Mapping[str, Array]:
        """Return what it remembers: its own arrays."""


def _arrays_of(value: Any) -> dict[str, Array]:
    """Return the arrays of an attribute, by what is put behind its name."""
    if isinstance(value, _HasSlots):
        value = value.slots()
    if isinstance(value, Mapping):
        return {f"/{key}": np.asarray(part) for key, part in value.items()}
    if isinstance(value, HasWeights):
        return {f"/{n}": np.asarray(part) for n, part in enumerate(value.get_weights())}
    return {"": np.asarray(value)}


def _restored(value: Any, parts: Mapping[str, Array]) -> Any:
    """Return an attribute with ``parts`` in it; arrays and modules stay the same objects."""
    if isinstance(value, HasWeights):
        value.set_weights(list(parts.values()))
        return value
    if isinstance(value, np.generic | int | float):
        return type(value)(parts[""])
    for key, array in _arrays_of(value).items():
        array[...] = parts[key]
    return value


class SurrealAlgorithm:
    """An actor, a buffer and a learner, as what an algorithm's package exports::

    algorithm = SurrealAlgorithm(MyActor, UniformBuffer, MyLearner)
    ParameterServer, make_learner = algorithm.parameter_server, algorithm.learner
    replay_spec, make_actor = algorithm.replay_spec, algorithm.actor
    """

    def __init__(self, actor: type[Actor], buffer: type[Buffer], learner: type[Learner]) -> None:
        self._actor = actor
        self._buffer = buffer
        self._learner = learner

    def parameter_server(
        self, config: Config, saver: Saver, metrics: Metrics
    ) -> ParameterServerBase:
        """Return what serves the parameters that the learner publishes.

        A learner is made once, to know the modules and their first parameters.
        """
        modules = ModuleDict(self._learner(config, config.settings.seed).module_dict())
        shapes = [[name, list(part.shape)] for name, part in modules.parameters().items()]
        fingerprint = {"algorithm": self._learner.__name__, "parameters": shapes}
        last_step = config.settings.max_global_step
        store = PublishedParameters(modules.vector())
        service = ParameterService(store, metrics)
        return ParameterServer(store, service, saver, fingerprint, last_step)

    def learner(self, config: Config, seed: int | None) -> Learner:
        """Return the learner."""
        return self._learner(config, seed)

    def replay_spec(self, config: Config) -> ReplaySpec:
        """Return what is stored of a step, and the buffer over it."""
        return ReplaySpec(
            schema=schema_of(columns_of(config)),
            capacity=self._buffer.capacity(config),
            tables={TABLE: self._buffer.spec(config)},
        )

    def actor(
        self, config: Config, session: ActorSession, actor_id: int, actor_mode: ActorMode
    ) -> Actor:
        """Return an actor."""
        return self._actor(config, session, actor_id, actor_mode)

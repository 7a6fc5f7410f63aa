"""Makes an algorithm's package of Surreal's three classes."""

from relaax.actor import Actor, ActorMode, ActorSession, ModuleDict
from relaax.actor.experience import columns_of
from relaax.algorithm_base import LearnerBase, Metrics, ParameterServerBase, Saver
from relaax.learning.published import serve_published
from relaax.learning.steps import schema_of
from relaax.replay.specs import ReplaySpec
from relaax.surreal.buffers import Buffer
from relaax.surreal.config import Config
from relaax.surreal.learner import TABLE, Learner


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
        return serve_published(modules.vector(), fingerprint, last_step, saver, metrics)

    def learner(self, config: Config, seed: int | None) -> LearnerBase:
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

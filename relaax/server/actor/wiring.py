"""Makes an actor and its connections: the one place that reads its configuration."""

import secrets
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

from relaax.acting.agent import SingleAgent
from relaax.algorithm_base import (
    AgentBase,
    ConfigBase,
    EnvironmentInfo,
    Evaluation,
    ExperienceSink,
    Metrics,
    Phase,
)
from relaax.client.gymnasium_actions import action_space_as_json
from relaax.client.gymnasium_factory import Environment
from relaax.client.gymnasium_observations import observation_space_as_json
from relaax.client.seeds import seeds_of_this_program
from relaax.compat.surreal.actor import Actor
from relaax.compat.surreal.algorithm_actor import AlgorithmActor
from relaax.compat.surreal.parameter_client import ParameterClient
from relaax.compat.surreal.pulled_bridge import PulledBridge
from relaax.compat.surreal.session import (
    EVAL_DETERMINISTIC,
    EVAL_STOCHASTIC,
    TRAINING,
    ActorSession,
    NoExperience,
    PullRule,
)
from relaax.configuration import ActorConfiguration, ActorOptions
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.configuration.announced_spaces import AnnouncedSpaces
from relaax.errors import ConfigurationError
from relaax.parameters.training_watch import TrainingWatch
from relaax.replay.client.spread import writer_to
from relaax.telemetry.kept_counts import DELIVERED, DROPPED, CountsRow

#: The evaluation of the modes in which nothing is learnt.
EVALUATIONS = {EVAL_DETERMINISTIC: Evaluation.DETERMINISTIC, EVAL_STOCHASTIC: Evaluation.STOCHASTIC}


def algorithm_of(configuration: ActorConfiguration) -> tuple[Algorithm, ConfigBase]:
    """Return the algorithm and its typed configuration; ConfigurationError without a learner."""
    section = configuration.algorithm
    algorithm = load_algorithm(section.directory)
    config = make_config(algorithm, section)
    if not algorithm.has_learner(config):
        raise ConfigurationError(
            f"algorithm {section.directory} has no learner: its environments connect to "
            "relaax-rlx-server"
        )
    return algorithm, config


def require_fit(config: ConfigBase, environment: Environment, env: str) -> AnnouncedSpaces:
    """Return the environment's spaces; ConfigurationError unless they are those of ``config``."""
    announced = AnnouncedSpaces(
        env,
        observation_space_as_json(environment.observation_space),
        action_space_as_json(environment.action_space),
    )
    if reason := announced.misfit(config):
        raise ConfigurationError(reason)
    return announced


def make_actor(
    algorithm: Algorithm,
    config: ConfigBase,
    options: ActorOptions,
    index: int,
    kept: CountsRow,
    resources: ExitStack,
    restarts: int = 0,
) -> Actor:
    """Return actor ``index``; ``resources`` will close it and its connections.

    ``kept`` counts its steps by their fate; ``restarts`` are those of its process.
    """
    bridge = algorithm.BridgeControl().parameter_server_stub(str(options.parameter_server))
    resources.callback(bridge.close)
    pulled = None if algorithm.has_actor else PulledBridge(bridge)
    asked = bridge if pulled is None else pulled.remote
    client = resources.enter_context(closing(ParameterClient(asked)))
    place = Place(index)
    watch = resources.enter_context(
        closing(
            TrainingWatch(
                bridge, lambda: 0, on_place=place.note if options.mode == TRAINING else None
            )
        )
    )
    session = ActorSession(
        parameters=client,
        experience=_experience(algorithm, config, options, bridge.metrics(), index, kept),
        metrics=bridge.metrics(),
        pull_rule=PullRule(options.fetch_parameter_mode, options.fetch_parameter_interval),
        limit_episode_length=options.limit_episode_length,
        seed=_seed(options, index, restarts),
        is_over=partial(_is_over, watch, options.mode),
    )
    if pulled is None:
        resources.callback(session.experience.close)
        actor: Actor = algorithm.make_actor(config, session, index, options.mode)
    else:
        agent = _agent(algorithm, config, session, pulled)
        agent.connected(_introduced(config, options, session, place))
        if options.mode != TRAINING:
            agent.evaluate(EVALUATIONS[options.mode])
        actor = AlgorithmActor(config, session, index, options.mode, agent, pulled)
    return resources.enter_context(closing(actor))


class Place:
    """The place of an actor's environment among all that train."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __call__(self) -> int:
        """Return it."""
        return self._number

    def note(self, number: int) -> None:
        """Take the parameter server's answer."""
        self._number = number


def _introduced(
    config: ConfigBase, options: ActorOptions, session: ActorSession, place: Place
) -> EnvironmentInfo:
    """Return the description of its environment for the agent."""
    return EnvironmentInfo(
        name=str(options.env),
        observation_space=config.observation_space(),
        action_space=config.action_space(),
        number=0,
        seed=session.seed,
        place=place,
    )


def _is_over(watch: TrainingWatch, mode: str) -> bool:
    """Return whether an actor ends: an evaluating one goes on as long as values are served."""
    return watch.is_over if mode == TRAINING else watch.phase is Phase.CLOSING


def _experience(
    algorithm: Algorithm,
    config: ConfigBase,
    options: ActorOptions,
    metrics: Metrics,
    index: int,
    kept: CountsRow,
) -> ExperienceSink[Any]:
    """Return where the steps of actor ``index`` go."""
    if options.mode != TRAINING:
        return NoExperience()
    urls = [str(each) for each in options.replay_servers or (options.learner,)]
    spec, drops = algorithm.replay_spec(config), options.when_full == "drop"
    return writer_to(
        urls,
        spec.schema,
        metrics,
        first=index,
        drops=drops,
        on_delivered=partial(kept.add, DELIVERED),
        on_actions_dropped=partial(kept.add, DROPPED),
        most_waiting=spec.most_waiting,
    )


def _agent(
    algorithm: Algorithm, config: ConfigBase, session: ActorSession, bridge: PulledBridge
) -> AgentBase:
    """Return the agent of workers, for one environment; it closes the session's experience."""
    agent = algorithm.make_batch_agent(
        config, bridge, session.seed, False, experience=session.experience
    )
    return SingleAgent(agent, session.metrics)


def _seed(options: ActorOptions, index: int, restarts: int) -> int:
    """Return another number below 2**32 for each actor, and for each start of it."""
    if options.seed is None:
        return secrets.randbits(32)
    seeds = seeds_of_this_program(options.seed, evaluates=options.mode != TRAINING)
    return seeds.of(index, restarts) or 0

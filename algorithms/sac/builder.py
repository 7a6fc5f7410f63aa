"""Wires SAC: the one place that reads the configuration, and hands values to parts."""

from typing import Any

import numpy as np

from relaax.algorithm_base import (
    BridgeBase,
    ExperienceSink,
    LearnerBase,
    Metrics,
    ParameterServerBase,
    Saver,
)
from relaax.learning.actor import Actor
from relaax.learning.networks import initial_parameters
from relaax.learning.parameter_server import ParameterServer as ServesParameters
from relaax.learning.policy import CurrentPolicy
from relaax.learning.preprocessor import Preprocessor
from relaax.learning.published import PublishedParameters, PublishedService
from relaax.learning.pulling import PullingSink
from relaax.learning.steps import StepRecorder, schema_of
from relaax.replay.limiter import Limiter
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.step_batch import StepBatch
from relaax.replay.views import Transitions

from .config import Config

#: The one table.
TABLE = "all"

#: How far updates may be ahead of steps, or behind: in updates.
ERROR_UPDATES = 16


def ParameterServer(config: Config, saver: Saver, metrics: Metrics) -> ParameterServerBase:  # noqa: N802
    """Return what serves the parameters that the learner publishes."""
    settings = config.settings
    initial = initial_parameters(config.network.manifest, "uniform", settings.seed)
    parameters = PublishedParameters(initial)
    return ServesParameters(
        store=parameters,
        service=PublishedService(parameters, metrics),
        saver=saver,
        fingerprint=config.fingerprint(),
        max_global_step=settings.max_global_step,
    )


def make_batch_agent(
    config: Config,
    parameter_server: BridgeBase,
    seed: int,
    learns_in_background: bool,
    experience: ExperienceSink[StepBatch],
) -> Actor[StepBatch]:
    """Return the agent of many environments, which delivers steps to ``experience``."""
    prepare_to_fork()
    from relaax.learning.distributions.graph_tf import graph_of
    from relaax.learning.networks.parameters_tf import ParameterTensors
    from relaax.learning.networks.policy_tf import policy_of
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

    settings, distribution = config.settings, config.distribution
    configure_tensorflow(settings.gpu, has_the_machine=False)
    tensors = ParameterTensors(config.network, settings.gpu)
    policy = CurrentPolicy(tensors.unpack, parameter_server.get())
    return Actor(
        preprocessor=Preprocessor(settings.state_size),
        policy=policy,
        model=policy_of(config.network, tensors, distribution, graph_of(distribution)),
        distribution=distribution,
        columns=config.columns,
        rollouts=StepRecorder(config.columns),
        experience=PullingSink(experience, parameter_server, policy),
        random=np.random.default_rng(None if settings.seed is None else [settings.seed, seed]),
        reward_scale=settings.reward_scale,
    )


def make_learner(config: Config, seed: int | None) -> LearnerBase:
    """Return the learner."""
    prepare_to_fork()
    from relaax.learning.distributions.graph_tf import graph_of
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

    from .learner_tf import SacLearner
    from .update_tf import SacRates, SacUpdate

    settings = config.settings
    configure_tensorflow(settings.gpu, has_the_machine=True, splits_operations=True)
    random = np.random.default_rng(None if seed is None else [seed, 2])
    graph: Any = graph_of(config.distribution)
    seeds = [None, None] if seed is None else [seed + 1, seed + 2]
    update = SacUpdate(
        config.network,
        config.critic,
        graph,
        initial_parameters(config.network.manifest, "uniform", seed),
        np.stack([initial_parameters(config.critic.manifest, "uniform", s) for s in seeds]),
        SacRates(
            policy=settings.policy_learning_rate,
            critic=settings.critic_learning_rate,
            temperature=settings.temperature_learning_rate,
            target=settings.target_rate,
            target_entropy=config.target_entropy,
        ),
        settings.initial_temperature,
    )
    actions = config.distribution.half.size
    return SacLearner(update, TABLE, settings.batch_size, actions, random)


def replay_spec(config: Config) -> ReplaySpec:
    """Return what is stored and drawn."""
    settings = config.settings
    limiter = Limiter(min_items=settings.learning_starts)
    if settings.updates_per_step is not None:
        per_insert = settings.updates_per_step * settings.batch_size
        limiter = Limiter(
            min_items=settings.learning_starts,
            samples_per_insert=per_insert,
            error_buffer=max(ERROR_UPDATES * settings.batch_size, 2 * per_insert),
        )
    view = Transitions(settings.n_step, settings.rewards_gamma)
    return ReplaySpec(
        schema=schema_of(config.columns),
        capacity=settings.replay_size,
        tables={TABLE: TableSpec(view, "uniform", limiter)},
    )


def prepare_to_fork() -> None:
    """Import TensorFlow and what needs it, so that workers share it; nothing of it is started."""
    from relaax.learning.tensorflow_runtime_tf import import_tensorflow

    import_tensorflow()
    from relaax.learning.distributions import graph_tf  # noqa: F401
    from relaax.learning.networks import policy_tf  # noqa: F401

"""Wires an actor-critic: the one place that reads the configuration, and hands values to parts."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from relaax.algorithm_base import (
    AgentBase,
    BridgeBase,
    ExperienceSink,
    Metrics,
    ParameterServerBase,
    Saver,
)
from relaax.learning.actor import Actor
from relaax.learning.agent import SingleAgent
from relaax.learning.background_learner import BackgroundLearner
from relaax.learning.evaluator import EvaluationParts
from relaax.learning.executed_actions import ExecutedActions
from relaax.learning.filters import Filters, ParameterSource
from relaax.learning.learner import GatheringSink, Learner, NoLearner
from relaax.learning.model import GradientModel, Objective
from relaax.learning.networks import initial_parameters
from relaax.learning.on_policy.config import ActorCriticConfig, PolicyConfig
from relaax.learning.policy import CurrentPolicy
from relaax.learning.preprocessor import Preprocessor
from relaax.learning.rollouts import Columns, RolloutBatch, RolloutStore
from relaax.parameters.parameter_server import ParameterServer
from relaax.parameters.parameter_service import ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.parameters.schedule import Remembered
from relaax.telemetry.interval_metrics import IntervalMetrics

#: Returns, for a configuration, what is minimised.
ObjectiveOf: TypeAlias = Callable[[ActorCriticConfig], Objective]


def make_parameter_server(
    config: ActorCriticConfig, saver: Saver, metrics: Metrics
) -> ParameterServerBase:
    """Return the owner of the parameters; the learning rate is annealed linearly."""
    settings, filters = config.settings, config.filters()
    initial = initial_parameters(config.network.manifest, settings.initialization, settings.seed)
    annealing = settings.annealing()
    if not settings.learn:  # then it matters to nobody that the rate has fallen to 0
        annealing = replace(annealing, begin_key=None)
    store = ParameterStore(
        parameters=np.concatenate([initial, *filters.initial()]),
        optimizer=filters.optimizer(settings.optimizer.make(initial.size)),
        learning_rate=Remembered(annealing, lambda: settings.initial_learning_rate),
    )
    return ParameterServer(
        store=store,
        service=ParameterService(store, metrics),
        saver=saver,
        fingerprint=config.fingerprint(),
        max_global_step=settings.max_global_step,
        learns=settings.learn,
    )


def make_objective(config: ActorCriticConfig) -> Objective:
    """Return the actor-critic loss."""
    from relaax.learning.distributions.graph_tf import graph_of
    from relaax.learning.on_policy.losses_tf import ActorCriticLoss
    from relaax.learning.returns_tf import VTrace

    settings, vtrace = config.settings, config.settings.vtrace
    return ActorCriticLoss(
        distribution=graph_of(config.distribution),
        discount=settings.rewards_gamma,
        trace_decay=settings.trace_decay,
        entropy_beta=settings.entropy_beta,
        value_loss_weight=settings.value_loss_weight,
        normalize_advantages=settings.normalize_advantages,
        policy_clip=settings.policy_clip,
        vtrace=None if vtrace is None else VTrace(vtrace.clip_rho, vtrace.clip_c),
        action_mask=settings.mask_name,
    )


def make_agent(
    config: ActorCriticConfig,
    parameter_server: BridgeBase,
    seed: int = 0,
    objective_of: ObjectiveOf = make_objective,
) -> AgentBase:
    """Return an agent of one environment, which learns before it chooses the next action."""
    actor = make_batch_agent(
        config, parameter_server, seed, learns_in_background=False, objective_of=objective_of
    )
    return SingleAgent(actor, parameter_server.metrics())


def make_batch_agent(
    config: ActorCriticConfig,
    parameter_server: BridgeBase,
    seed: int,
    learns_in_background: bool,
    objective_of: ObjectiveOf = make_objective,
) -> Actor[RolloutBatch]:
    """Return the agent of many environments; in the background it learns beside acting.

    ``objective_of`` returns, for a configuration, what is minimised.
    """
    prepare_to_fork()
    # Imported here: these need TensorFlow, and the parameter server runs without it.
    from relaax.learning.distributions.graph_tf import graph_of
    from relaax.learning.networks.parameters_tf import ParameterTensors
    from relaax.learning.networks.policy_tf import policy_of
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

    settings, network = config.settings, config.network
    waits = settings.wait_for_learning == "always"
    configure_tensorflow(settings.gpu, learns_in_background, splits_operations=waits)
    distribution, columns = config.distribution, columns_of(config)
    tensors, filters = ParameterTensors(network, settings.gpu), config.filters()
    bridged = filters.bridged(parameter_server)
    policy = CurrentPolicy(tensors.unpack, bridged.get())
    random = np.random.default_rng(None if settings.seed is None else [settings.seed, seed])
    learner = _make_learner(
        config,
        partial(make_gradients, config, objective_of),
        parameter_server,
        bridged,
        policy,
        random.spawn(1)[0],
        learns_in_background,
    )
    return Actor(
        preprocessor=_preprocessor(config, filters),
        policy=policy,
        model=policy_of(
            network,
            tensors,
            distribution,
            graph_of(distribution),
            columns.extras if settings.learn else (),
            settings.mask_name,
        ),
        distribution=distribution,
        columns=columns,
        rollouts=RolloutStore(settings.episode_len, columns) if settings.learn else None,
        experience=_gathering(learner, settings.least_rollouts_per_update),
        random=random,
        clip_rewards=settings.clip_rewards,
        reward_scale=settings.reward_scale,
        reward_filter=filters.rewards,
        units=config.action_units,
        executed=ExecutedActions(
            config.action_space(), config.action_units, parameter_server.metrics()
        ),
        evaluation=EvaluationParts(
            source=parameter_server,
            unpack=tensors.unpack,
            make_preprocessor=lambda filters: _preprocessor(config, filters),
            filters=filters,
        ),
    )


def _preprocessor(config: ActorCriticConfig, filters: Filters) -> Preprocessor:
    settings = config.settings
    return Preprocessor(settings.inputs, settings.history_len, settings.mask, filters.states)


def make_gradients(
    config: ActorCriticConfig, objective_of: ObjectiveOf = make_objective
) -> GradientModel:
    """Return the gradients of what ``objective_of`` returns."""
    from relaax.learning.gradients_tf import RolloutGradients
    from relaax.learning.networks.parameters_tf import ParameterTensors

    network, length = config.network, config.settings.episode_len
    tensors, objective = ParameterTensors(network), objective_of(config)
    return RolloutGradients(network, tensors, objective, length, columns_of(config))


def columns_of(config: PolicyConfig, filtered: Collection[str] = ()) -> Columns:
    """Return what one row of a rollout is made of; observations that will be ``filtered`` apart."""
    return Columns.of(
        config.network,
        config.distribution,
        action_mask=config.settings.mask,
        filtered=filtered,
        extras=config.extras,
    )


def prepare_to_fork() -> None:
    """Import TensorFlow and what needs it, so that workers share it; nothing of it is started."""
    from relaax.learning.tensorflow_runtime_tf import import_tensorflow

    import_tensorflow()
    from relaax.learning.distributions import graph_tf  # noqa: F401
    from relaax.learning.networks import policy_tf  # noqa: F401
    from relaax.learning.on_policy import losses_tf  # noqa: F401


def _make_learner(
    config: ActorCriticConfig,
    make_model: Callable[[], GradientModel],
    parameter_server: BridgeBase,
    bridged: ParameterSource,
    policy: CurrentPolicy,
    random: np.random.Generator,
    learns_in_background: bool,
) -> ExperienceSink[RolloutBatch]:
    settings = config.settings
    if not settings.learn:
        return NoLearner()
    metrics = parameter_server.metrics()
    most = settings.rollouts_per_update
    learner = Learner(
        model=make_model(),
        policy=policy,
        gradients=bridged,
        counter=parameter_server,
        metrics=IntervalMetrics(metrics),
        gradient_norm_clipping=settings.optimizer.gradient_norm_clipping,
        passes=settings.passes,
        minibatches=settings.minibatches,
        random=random,
        most_at_once=most,
        expected=max(most, settings.least_rollouts_per_update) if learns_in_background else 0,
    )
    if settings.wait_for_learning == "always" or not learns_in_background:
        return learner
    return BackgroundLearner(
        learner, policy, metrics, most, drops=settings.wait_for_learning == "never"
    )


def _gathering(learner: ExperienceSink[RolloutBatch], least: int) -> ExperienceSink[RolloutBatch]:
    return GatheringSink(learner, least) if least > 1 else learner

"""Wires PPO: the one place that reads the configuration, and hands values to parts."""

from collections.abc import Collection
from typing import Any

import numpy as np

from relaax.algorithm_base import (
    BridgeBase,
    ExperienceSink,
    FloatVector,
    LearnerBase,
    Metrics,
    ParameterServerBase,
    Saver,
)
from relaax.learning.actor import Actor
from relaax.learning.evaluator import EvaluationParts
from relaax.learning.executed_actions import ExecutedActions
from relaax.learning.filters import FilteringModel, Filters
from relaax.learning.networks import initial_parameters
from relaax.learning.on_policy import columns_of, prepare_to_fork
from relaax.learning.policy import CurrentPolicy, PolicyUse
from relaax.learning.preprocessor import Preprocessor
from relaax.learning.pulling import PullingSink
from relaax.learning.steps import StepRecorder, schema_of
from relaax.parameters.published import PublishedSource, serve_published
from relaax.replay.limiter import Limiter
from relaax.replay.rollouts import Rollouts
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.step_batch import StepBatch

from .adaptation import Adaptation, Knobs
from .config import Config
from .settings import PpoSettings

#: The one table.
TABLE = "rollouts"


def ParameterServer(config: Config, saver: Saver, metrics: Metrics) -> ParameterServerBase:  # noqa: N802
    """Return what serves the parameters that the learner publishes."""
    settings = config.settings
    initial = _initial(config, settings.seed)
    return serve_published(initial, config.fingerprint(), settings.max_global_step, saver, metrics)


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

    settings, distribution, filters = config.settings, config.distribution, config.filters()
    configure_tensorflow(settings.gpu, has_the_machine=False)
    tensors, columns = ParameterTensors(config.network, settings.gpu), columns_of(config)
    source = filters.sourced(PublishedSource(parameter_server))
    policy = CurrentPolicy(tensors.unpack, source.get())
    model = policy_of(
        config.network,
        tensors,
        distribution,
        graph_of(distribution),
        columns.extras,
        settings.mask_name,
    )
    return Actor(
        preprocessor=_preprocessor(config, Filters(), filtered_later=filters.states),
        policy=policy,
        model=FilteringModel(model, filters.states) if filters.states else model,
        distribution=distribution,
        columns=columns,
        rollouts=StepRecorder(
            columns_of(config, filters.states), is_on_policy=True, sink=experience
        ),
        experience=PullingSink(
            experience,
            source,
            policy,
            settings.pull_interval_s,
            use=PolicyUse(parameter_server.metrics()),
        ),
        random=np.random.default_rng(None if settings.seed is None else [settings.seed, seed]),
        units=config.action_units,
        executed=ExecutedActions(
            config.action_space(), config.action_units, parameter_server.metrics()
        ),
        evaluation=EvaluationParts(
            source=parameter_server,
            unpack=tensors.unpack,
            make_preprocessor=lambda still: _preprocessor(config, still),
            filters=filters,
            model=model,
        ),
    )


def _preprocessor(
    config: Config, filters: Filters, filtered_later: Collection[str] = ()
) -> Preprocessor:
    settings = config.settings
    return Preprocessor(
        settings.inputs, settings.history_len, settings.mask, filters.states, filtered_later
    )


def make_learner(config: Config, seed: int | None) -> LearnerBase:
    """Return the learner."""
    prepare_to_fork()
    from relaax.learning.networks.parameters_tf import ParameterTensors
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

    from .learner_tf import PpoLearner, Rules

    settings, filters = config.settings, config.filters()
    configure_tensorflow(settings.gpu, has_the_machine=True, splits_operations=True)
    tensors, initial = ParameterTensors(config.network, settings.gpu), _initial(config, seed)
    return PpoLearner(
        make_graphs(config, tensors),
        tensors.unpack,
        initial,
        filters.optimizer(settings.optimizer.make(config.network.manifest.size)),
        filters,
        Rules(
            passes=settings.passes,
            gradient_norm_clipping=settings.optimizer.gradient_norm_clipping,
            kl_stop=settings.kl_stop,
            reward_scale=settings.reward_scale,
            clips_rewards=settings.clip_rewards,
        ),
        _first_knobs(settings),
        _adaptation(settings),
        settings.annealing(),
        TABLE,
        settings.rollouts_per_batch,
        np.random.default_rng(None if seed is None else [seed, 2]),
    )


def make_graphs(config: Config, tensors: Any) -> Any:
    """Return the ``PpoGraphs``, which compute returns and gradients of ``ParameterTensors``."""
    from relaax.learning.distributions.graph_tf import graph_of

    from .graphs_tf import PpoGraphs, Returns
    from .losses_tf import PpoLoss

    settings, network = config.settings, config.network
    loss = PpoLoss(
        graph_of(config.distribution),
        entropy_beta=settings.entropy_beta,
        value_loss_weight=settings.value_loss_weight,
        clips=settings.objective == "clip",
        kl_target=settings.kl_target,
        kl_cutoff=settings.kl_cutoff,
        value_clip=settings.value_clip,
    )
    returns = Returns(settings.rewards_gamma, settings.trace_decay, settings.normalize_advantages)
    sequences = settings.rollouts_per_batch * (1 if network.lstm_size else settings.episode_len)
    minibatch = -(-sequences // settings.minibatches)
    return PpoGraphs(network, tensors, loss, returns, minibatch, settings.mask_name)


def replay_spec(config: Config) -> ReplaySpec:
    """Return what is stored and drawn."""
    settings = config.settings
    count = settings.rollouts_per_batch
    table = TableSpec(
        Rollouts(settings.episode_len, settings.burn_in),
        "fifo",
        Limiter(min_items=count, max_items=count * (settings.max_policy_lag + 1)),
        holds_drawn=True,
        keeps_undrawn=True,
    )
    schema = schema_of(columns_of(config, config.filters().states))
    return ReplaySpec(schema, settings.steps_stored, {TABLE: table}, config.units())


def _initial(config: Config, seed: int | None) -> FloatVector:
    """Return the network's parameters, and the statistics of filters behind them."""
    settings = config.settings
    network = initial_parameters(config.network.manifest, settings.initialization, seed)
    return np.concatenate([network, *config.filters().initial()])


def _first_knobs(settings: PpoSettings) -> Knobs:
    return Knobs(settings.policy_clip or 0.0, settings.kl_penalty, settings.initial_learning_rate)


def _adaptation(settings: PpoSettings) -> Adaptation:
    """Return which knobs follow ``kl_target``."""
    follows = settings.learning_rate_schedule == "kl"
    return Adaptation(
        settings.kl_target,
        clip_range=settings.policy_clip_range,
        penalty_range=settings.kl_penalty_range if settings.objective == "kl_penalty" else None,
        learning_rate_range=settings.learning_rate_range if follows else None,
    )

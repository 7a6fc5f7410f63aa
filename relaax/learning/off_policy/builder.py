"""Wires what off-policy algorithms share; their own builders hand over the rest."""

from collections.abc import Callable, Collection
from functools import partial
from typing import TypeAlias

import numpy as np

from relaax.algorithm_base import (
    BridgeBase,
    ExperienceSink,
    FloatVector,
    Metrics,
    ParameterServerBase,
    Saver,
)
from relaax.learning.actor import Actor
from relaax.learning.evaluator import EvaluationParts
from relaax.learning.executed_actions import ExecutedActions
from relaax.learning.exploration import NoiseSource
from relaax.learning.exploration.noise import UniformAtFirst
from relaax.learning.exploration.parameter_noise import ParameterNoise
from relaax.learning.filters import FilteringModel, Filters
from relaax.learning.model import PolicyModel
from relaax.learning.networks.manifest import Parameters
from relaax.learning.off_policy.config import POLICY_VARIABLE, OffPolicyConfig
from relaax.learning.off_policy.learner import OffPolicyLearner
from relaax.learning.off_policy.learner_roles import Update
from relaax.learning.off_policy.settings import (
    ContinuousSettings,
    FloatArray,
    LearnersSection,
    OffPolicySettings,
)
from relaax.learning.policy import CurrentPolicy, PolicyUse
from relaax.learning.preprocessor import Preprocessor
from relaax.learning.pulling import PullingSink
from relaax.learning.steps import StepRecorder, schema_of
from relaax.parameters.averaging import Averager, AveragingService
from relaax.parameters.optimizers import Adam, AdamSettings
from relaax.parameters.optimizers.optimizer import OptimizerOfParts, Part
from relaax.parameters.parameter_server import ParameterServer as ServesParameters
from relaax.parameters.parameter_server import Store
from relaax.parameters.parameter_service import ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.parameters.published import serve_published
from relaax.parameters.schedules import SlotPlaces
from relaax.replay.limiter import Limiter
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.step_batch import StepBatch
from relaax.replay.views import Transitions

#: The one table.
TABLE = "all"

#: How far updates may be ahead of steps, or behind: in updates.
ERROR_UPDATES = 16

#: Makes an actor's exploration, of its policy and a source of random numbers.
MakeNoise: TypeAlias = Callable[[CurrentPolicy, np.random.Generator], NoiseSource]

#: Makes a policy with noise on its parameters, of what unpacks them and of the model.
Perturbed: TypeAlias = Callable[[Callable[[FloatVector], Parameters], PolicyModel], ParameterNoise]


def ParameterServer(  # noqa: N802
    config: OffPolicyConfig, saver: Saver, metrics: Metrics
) -> ParameterServerBase:
    """Return what serves the parameters that the learner publishes, or several learners move."""
    settings = config.settings
    fingerprint, last_step = config.fingerprint(), settings.max_global_step
    if settings.learners is None:
        policy = config.initial(settings.seed)[POLICY_VARIABLE]
        initial = np.concatenate([policy, *config.filters().initial()])
        explores = settings.exploration_by_step
        return serve_published(initial, fingerprint, last_step, saver, metrics, explores)
    store, service = _moved_by(settings.learners, config, metrics)
    is_asynchronous = settings.learners.gradients == "asynchronous"
    return ServesParameters(
        store,
        service,
        saver,
        fingerprint,
        last_step,
        has_shards=is_asynchronous,
        exploration=settings.exploration_by_step,
    )


def _moved_by(
    learners: LearnersSection, config: OffPolicyConfig, metrics: Metrics
) -> tuple[Store, BridgeBase]:
    """Return what holds all that is learnt; the policy is the first of it.

    The statistics of filters are the last.
    """
    filters = config.filters()
    initial, rates = config.initial(config.settings.seed), config.learning_rates
    parts = {
        name: Part(vector.size, Adam(vector.size, AdamSettings()), rates[name])
        for name, vector in initial.items()
    }
    joined = np.concatenate([*initial.values(), *filters.initial()])
    store = ParameterStore(joined, filters.optimizer(OptimizerOfParts(parts)), lambda _: 1.0)
    if learners.gradients == "asynchronous":
        return store, ParameterService(store, metrics)
    averager = Averager(store, learners.count, learners.timeout, filters)
    return store, AveragingService(store, metrics, averager)


def make_actor(
    config: OffPolicyConfig,
    parameter_server: BridgeBase,
    seed: int,
    experience: ExperienceSink[StepBatch],
    make_noise: MakeNoise | None = None,
    perturbed: Perturbed | None = None,
    places: SlotPlaces | None = None,
) -> Actor[StepBatch]:
    """Return the agent of many environments, which delivers steps to ``experience``.

    ``make_noise`` makes what its choices are made with, and asks ``places`` for the places of
    environments; ``perturbed`` makes a policy with noise on its parameters. Continuous actions are
    drawn evenly up to ``first_random_steps``.
    """
    prepare_to_fork()
    from relaax.learning.distributions.graph_tf import graph_head_of
    from relaax.learning.networks.parameters_tf import ParameterTensors
    from relaax.learning.networks.policy_tf import policy_of
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

    settings, actions, filters = config.settings, config.actions, config.filters()
    configure_tensorflow(settings.gpu, has_the_machine=False)
    tensors = ParameterTensors(config.network, settings.gpu)
    size, unpack = config.network.manifest.size, tensors.unpack
    model = policy_of(
        config.network,
        tensors,
        actions,
        graph_head_of(actions),
        config.extras,
        action_mask=None if settings.mask is None else settings.mask.name,
        heads=config.heads,
    )
    clean, clean_model = unpack, model
    if filters.states:
        model = FilteringModel(model, filters.states)
    if perturbed is not None:
        noisy = perturbed(unpack, model)
        unpack, model = noisy.unpack, noisy
    source = filters.sourced(parameter_server)
    policy = CurrentPolicy(lambda values: unpack(values[:size]), source.get())
    random = np.random.default_rng(None if settings.seed is None else [settings.seed, seed])
    if isinstance(settings, ContinuousSettings):
        steps = settings.first_random_steps
        model = UniformAtFirst(model, steps, lambda: policy.global_t, random)
    return Actor(
        preprocessor=_preprocessor(settings, Filters(), filtered_later=filters.states),
        policy=policy,
        model=model,
        distribution=actions,
        columns=config.columns,
        rollouts=StepRecorder(config.stored_columns, sink=experience),
        experience=PullingSink(
            experience, source, policy, use=PolicyUse(parameter_server.metrics())
        ),
        random=random,
        reward_scale=settings.reward_scale,
        clip_rewards=settings.clip_rewards,
        units=config.action_units,
        executed=ExecutedActions(
            config.action_space(), config.action_units, parameter_server.metrics()
        ),
        exploration=None if make_noise is None else make_noise(policy, random),
        evaluation=EvaluationParts(
            source=parameter_server,
            unpack=lambda values: clean(values[:size]),
            make_preprocessor=lambda still: _preprocessor(settings, still),
            filters=filters,
            model=clean_model,
            make_noise=None if make_noise is None else partial(make_noise, policy),
        ),
        places=places,
    )


def replay_spec(config: OffPolicyConfig) -> ReplaySpec:
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
    view = Transitions(settings.n_step, settings.rewards_gamma, stack=settings.history_len)
    table = TableSpec(view, "uniform", limiter)
    if settings.prioritized is not None:
        table = TableSpec(view, "prioritized", limiter, alpha=settings.prioritized.alpha)
    schema = schema_of(config.stored_columns, is_on_policy=False)
    return ReplaySpec(schema, settings.replay_size, {TABLE: table}, config.units())


def _preprocessor(
    settings: OffPolicySettings, filters: Filters, filtered_later: Collection[str] = ()
) -> Preprocessor:
    return Preprocessor(
        settings.inputs,
        settings.history_len,
        settings.mask,
        filters=filters.states,
        filtered_later=filtered_later,
    )


def learner_of(
    config: OffPolicyConfig, update: Update, noise: Callable[[int], FloatArray]
) -> OffPolicyLearner:
    """Return the learner that makes an ``update`` of each batch.

    ``noise`` returns what the update of so many transitions draws with.
    """
    settings = config.settings
    return OffPolicyLearner(
        update,
        TABLE,
        settings.batch_size,
        noise,
        settings.prioritized,
        shares_gradients=settings.learners is not None,
        history_len=settings.history_len,
        filters=config.filters(),
    )


def prepare_to_fork() -> None:
    """Import TensorFlow and what needs it, so that workers share it; nothing of it is started."""
    from relaax.learning.tensorflow_runtime_tf import import_tensorflow

    import_tensorflow()
    from relaax.learning.distributions import graph_tf  # noqa: F401
    from relaax.learning.networks import policy_tf  # noqa: F401

"""Wires DA3C: the one place that reads the configuration, and hands its values to parts."""

import numpy as np

from relaax.algorithm_base import (
    AgentBase,
    BridgeBase,
    ExperienceSink,
    Metrics,
    ParameterServerBase,
    Saver,
)
from relaax.interval_metrics import IntervalMetrics
from relaax.learning.actor import Actor
from relaax.learning.agent import SingleAgent
from relaax.learning.background_learner import BackgroundLearner
from relaax.learning.distributions import Categorical
from relaax.learning.learner import Learner, NoLearner
from relaax.learning.model import GradientModel
from relaax.learning.networks import initial_parameters
from relaax.learning.optimizers import RMSProp, RMSPropSettings, linear_anneal
from relaax.learning.parameter_server import ParameterServer
from relaax.learning.parameter_service import ParameterService
from relaax.learning.parameter_store import ParameterStore
from relaax.learning.policy import CurrentPolicy
from relaax.learning.preprocessor import Preprocessor
from relaax.learning.rollouts import Columns, RolloutBatch, RolloutStore

from .config import Config
from .networks import fingerprint_of


def make_parameter_server(config: Config, saver: Saver, metrics: Metrics) -> ParameterServerBase:
    """Return the owner of the parameters: a shared RMSProp, its learning rate annealed linearly."""
    settings = config.settings
    initial = initial_parameters(config.network.manifest, settings.initialization, settings.seed)
    store = ParameterStore(
        parameters=initial,
        optimizer=RMSProp(
            initial.size, RMSPropSettings(settings.RMSProp.decay, settings.RMSProp.epsilon)
        ),
        learning_rate=lambda global_t: linear_anneal(
            settings.initial_learning_rate, global_t, settings.max_global_step
        ),
    )
    return ParameterServer(
        store=store,
        service=ParameterService(store, metrics),
        saver=saver,
        fingerprint=fingerprint_of(config.network),
        max_global_step=settings.max_global_step,
    )


def make_agent(config: Config, parameter_server: BridgeBase, seed: int = 0) -> AgentBase:
    """Return an agent of one environment, which learns before it chooses the next action."""
    actor = make_batch_agent(config, parameter_server, seed, learns_in_background=False)
    return SingleAgent(actor, parameter_server.metrics())


def make_batch_agent(
    config: Config, parameter_server: BridgeBase, seed: int, learns_in_background: bool
) -> Actor:
    """Return the agent of many environments; in the background it learns beside acting."""
    prepare_to_fork()
    # Imported here: these need TensorFlow, and the parameter server runs without it.
    from relaax.learning.distributions.categorical_tf import GraphCategorical
    from relaax.learning.networks.parameters_tf import ParameterTensors
    from relaax.learning.networks.policy_tf import policy_of
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

    settings, network = config.settings, config.network
    waits = settings.wait_for_learning == "always"
    configure_tensorflow(settings.gpu, learns_in_background, splits_operations=waits)
    distribution, columns = Categorical(settings.action_size), columns_of(config)
    tensors = ParameterTensors(network)
    policy = CurrentPolicy(tensors.unpack, parameter_server.get())
    gradients = make_gradients(config)
    return Actor(
        preprocessor=Preprocessor(settings.state_size, settings.history_len),
        policy=policy,
        model=policy_of(network, tensors, distribution, GraphCategorical(), settings.learn),
        distribution=distribution,
        columns=columns,
        rollouts=RolloutStore(settings.episode_len, columns) if settings.learn else None,
        experience=_make_learner(config, parameter_server, gradients, policy, learns_in_background),
        random=np.random.default_rng(None if settings.seed is None else [settings.seed, seed]),
        clip_rewards=settings.clip_rewards,
    )


def make_gradients(config: Config) -> GradientModel:
    """Return the gradients of the actor-critic loss."""
    from relaax.learning.distributions.categorical_tf import GraphCategorical
    from relaax.learning.gradients_tf import RolloutGradients
    from relaax.learning.networks.parameters_tf import ParameterTensors

    from .losses_tf import ActorCriticLoss

    settings = config.settings
    objective = ActorCriticLoss(
        distribution=GraphCategorical(),
        discount=settings.rewards_gamma,
        trace_decay=settings.trace_decay,
        entropy_beta=settings.entropy_beta,
        value_loss_weight=settings.value_loss_weight,
        normalize_advantages=settings.normalize_advantages,
        policy_clip=settings.policy_clip,
        vtrace=settings.vtrace,
    )
    network, length = config.network, settings.episode_len
    return RolloutGradients(
        network, ParameterTensors(network), objective, length, columns_of(config)
    )


def columns_of(config: Config) -> Columns:
    """Return what one row of a rollout is made of."""
    settings = config.settings
    observation_dtype = np.uint8 if settings.is_image else np.float32
    return Columns.of(config.network, Categorical(settings.action_size), observation_dtype)


def prepare_to_fork() -> None:
    """Import TensorFlow and what needs it, so that workers share it; nothing of it is started."""
    from relaax.learning.tensorflow_runtime_tf import import_tensorflow

    import_tensorflow()
    from relaax.learning.distributions import categorical_tf  # noqa: F401
    from relaax.learning.networks import policy_tf  # noqa: F401

    from . import losses_tf  # noqa: F401


def _make_learner(
    config: Config,
    parameter_server: BridgeBase,
    gradients: GradientModel,
    policy: CurrentPolicy,
    learns_in_background: bool,
) -> ExperienceSink[RolloutBatch]:
    settings = config.settings
    if not settings.learn:
        return NoLearner()
    metrics = parameter_server.metrics()
    learner = Learner(
        model=gradients,
        policy=policy,
        gradients=parameter_server,
        counter=parameter_server,
        metrics=IntervalMetrics(metrics),
        gradient_norm_clipping=settings.RMSProp.gradient_norm_clipping,
        passes=settings.passes,
    )
    if settings.wait_for_learning == "always" or not learns_in_background:
        return learner
    return BackgroundLearner(
        learner,
        policy,
        metrics,
        settings.rollouts_per_update,
        drops=settings.wait_for_learning == "never",
    )

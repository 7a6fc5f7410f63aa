"""Wires SAC: the one place that reads the configuration, and hands values to parts."""

from typing import Any

import numpy as np

from relaax.algorithm_base import BridgeBase, ExperienceSink, LearnerBase
from relaax.learning.actor import Actor
from relaax.learning.off_policy import learner_of, make_actor, prepare_to_fork
from relaax.learning.off_policy.critics import CRITICS
from relaax.replay.step_batch import StepBatch

from .config import Config


def make_batch_agent(
    config: Config,
    parameter_server: BridgeBase,
    seed: int,
    learns_in_background: bool,
    experience: ExperienceSink[StepBatch],
) -> Actor[StepBatch]:
    """Return the agent of many environments, which delivers steps to ``experience``."""
    return make_actor(config, parameter_server, seed, experience)


def make_learner(config: Config, seed: int | None) -> LearnerBase:
    """Return the learner."""
    prepare_to_fork()
    from relaax.learning.distributions.graph_tf import graph_of
    from relaax.learning.off_policy.variables_tf import Variables
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

    from .update_tf import TARGETS, SacUpdate

    settings = config.settings
    configure_tensorflow(settings.gpu, has_the_machine=True, splits_operations=True)
    random = np.random.default_rng(None if seed is None else [seed, 2])
    graph: Any = graph_of(config.actions)
    variables = Variables(config.initial(seed), {TARGETS: CRITICS}, config.learning_rates)
    update = SacUpdate(
        config.network, config.critic, graph, variables, settings.target_rate, config.target_entropy
    )
    numbers = config.actions.gaussian.actions
    return learner_of(
        config, update, lambda count: random.standard_normal((2, count, numbers), np.float32)
    )

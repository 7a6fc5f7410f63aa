"""Wires DQN: the one place that reads the configuration, and hands values to parts."""

import numpy as np

from relaax.algorithm_base import BridgeBase, ExperienceSink, LearnerBase
from relaax.learning.actor import Actor
from relaax.learning.exploration import NoiseSource
from relaax.learning.exploration.epsilon_greedy import EpsilonGreedy
from relaax.learning.off_policy import learner_of, make_actor, prepare_to_fork
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.policy import CurrentPolicy
from relaax.parameters.schedules import Ladder, SlotPlaces
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
    keys, places = config.settings.exploration, SlotPlaces()

    def noise(policy: CurrentPolicy, random: np.random.Generator) -> NoiseSource:
        return EpsilonGreedy(
            config.settings.action_size,
            keys.epsilon,
            lambda: policy.global_t,
            random,
            Ladder(keys.rungs, places),
            keys.exponent,
        )

    return make_actor(config, parameter_server, seed, experience, noise, places=places)


def make_learner(config: Config, seed: int | None) -> LearnerBase:
    """Return the learner."""
    prepare_to_fork()
    from relaax.learning.off_policy.variables_tf import Variables
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

    from .update_tf import TARGET, DqnUpdate

    settings = config.settings
    configure_tensorflow(settings.gpu, has_the_machine=True, splits_operations=True)
    followers = {TARGET: POLICY_VARIABLE}
    update = DqnUpdate(
        config.network,
        config.actions,
        Variables(config.initial(seed), followers, config.learning_rates),
        settings.target_rate,
        settings.target_every,
        settings.double,
        settings.gradient_norm_clipping,
        None if settings.mask is None else settings.mask.name,
    )
    return learner_of(config, update, lambda count: np.zeros(count, np.float32))

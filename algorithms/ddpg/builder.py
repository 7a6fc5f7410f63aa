"""Wires DDPG: the one place that reads the configuration, and hands values to parts."""

from functools import partial

import numpy as np

from relaax.algorithm_base import BridgeBase, ExperienceSink, LearnerBase
from relaax.learning.actor import Actor
from relaax.learning.exploration import NoiseSource
from relaax.learning.exploration.action_noise import NormalNoise, OrnsteinUhlenbeckNoise
from relaax.learning.exploration.parameter_noise import ParameterNoise
from relaax.learning.off_policy import learner_of, make_actor, prepare_to_fork
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.off_policy.critics import CRITICS
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

    places = SlotPlaces()

    def noise(_: CurrentPolicy, random: np.random.Generator) -> NoiseSource:
        return exploration_of(config, random, places)

    keys = config.settings.exploration
    perturbed = None
    if keys.type == "parameters":
        perturbed = partial(
            ParameterNoise,
            sigma=keys.sigma,
            random=np.random.default_rng([seed, 3]),
            target=keys.target,
        )
    return make_actor(config, parameter_server, seed, experience, noise, perturbed, places)


def exploration_of(config: Config, random: np.random.Generator, places: SlotPlaces) -> NoiseSource:
    """Return the noise of the actions of a worker whose environments have these ``places``."""
    keys, numbers = config.settings.exploration, config.actions.outputs
    ladder = Ladder(keys.rungs, places)
    if keys.type == "ou":
        return OrnsteinUhlenbeckNoise(numbers, keys.sigma, random, ladder, keys.theta, keys.dt)
    sigma = 0.0 if keys.type == "parameters" else keys.sigma
    return NormalNoise(numbers, sigma, random, ladder)


def make_learner(config: Config, seed: int | None) -> LearnerBase:
    """Return the learner."""
    prepare_to_fork()
    from relaax.learning.off_policy.variables_tf import Variables
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

    from .update_tf import TARGET_CRITICS, TARGET_POLICY, DdpgRates, DdpgUpdate

    settings = config.settings
    configure_tensorflow(settings.gpu, has_the_machine=True, splits_operations=True)
    random = np.random.default_rng(None if seed is None else [seed, 2])
    delay = settings.policy_delay or 1
    followers = {TARGET_POLICY: POLICY_VARIABLE, TARGET_CRITICS: CRITICS}
    update = DdpgUpdate(
        config.network,
        config.critic,
        settings.critics,
        config.actions,
        Variables(config.initial(seed), followers, config.learning_rates),
        DdpgRates(
            target=settings.target_rate,
            target_every=settings.target_every or delay,
            policy_delay=delay,
            target_noise=settings.target_noise or 0.0,
            target_noise_clip=settings.target_noise_clip,
        ),
    )
    numbers = config.actions.outputs
    return learner_of(
        config, update, lambda count: random.standard_normal((count, numbers), np.float32)
    )

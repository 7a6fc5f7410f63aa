"""Wires DDPG: the one place that reads the configuration, and hands values to parts."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from relaax.assembly import OffPolicyBuilder, PolicyParts
from relaax.learning.exploration import NoiseSource
from relaax.learning.exploration.action_noise import NormalNoise, OrnsteinUhlenbeckNoise
from relaax.learning.exploration.ladder import Ladder, SlotPlaces
from relaax.learning.exploration.parameter_noise import ParameterNoise
from relaax.learning.off_policy import Update
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.off_policy.critics import CRITICS
from relaax.learning.off_policy.settings import FloatArray

from .config import Config


class DdpgBuilder(OffPolicyBuilder[Config]):
    """DDPG, or TD3 with ``twin: true``."""

    def policy(self, seed: int) -> PolicyParts:
        """See OffPolicyBuilder; with noise on actions, or on the policy's parameters."""
        keys, parts = self.config.settings.exploration, super().policy(seed)
        perturbed = None
        if keys.type == "parameters":
            perturbed = partial(
                ParameterNoise,
                sigma=keys.sigma,
                random=np.random.default_rng([seed, 3]),
                target=keys.target,
            )
        return replace(
            parts,
            make_noise=lambda _, random: exploration_of(self.config, random, parts.places),
            perturbed=perturbed,
        )

    def update(self, variables: Callable[..., Any]) -> Update:
        """See OffPolicyBuilder."""
        from .method_tf import TARGET_CRITICS, TARGET_POLICY, Rates, TwinDelayed

        config, settings = self.config, self.config.settings
        delay = settings.policy_delay or 1
        return TwinDelayed(
            config.network,
            config.critic,
            settings.critics,
            config.actions,
            variables({TARGET_POLICY: POLICY_VARIABLE, TARGET_CRITICS: CRITICS}),
            Rates(
                target=settings.target_rate,
                target_every=settings.target_every or delay,
                policy_delay=delay,
                target_noise=settings.target_noise or 0.0,
                target_noise_clip=settings.target_noise_clip,
            ),
        )

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Return the noise that the actions behind a step are drawn with."""
        return random.standard_normal((count, self.config.actions.outputs), np.float32)


def exploration_of(config: Config, random: np.random.Generator, places: SlotPlaces) -> NoiseSource:
    """Return the noise of the actions of a worker whose environments have these ``places``."""
    keys, numbers = config.settings.exploration, config.actions.outputs
    ladder = Ladder(keys.rungs, places)
    if keys.type == "ou":
        return OrnsteinUhlenbeckNoise(numbers, keys.sigma, random, ladder, keys.theta, keys.dt)
    sigma = 0.0 if keys.type == "parameters" else keys.sigma
    return NormalNoise(numbers, sigma, random, ladder)

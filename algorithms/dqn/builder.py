"""Wires DQN: the one place that reads the configuration, and hands values to parts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from relaax.assembly import OffPolicyBuilder, PolicyParts
from relaax.learning.exploration import NoiseSource
from relaax.learning.exploration.epsilon_greedy import EpsilonGreedy
from relaax.learning.exploration.ladder import Ladder
from relaax.learning.off_policy import Update
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.policy import CurrentPolicy

from .config import Config


class DqnBuilder(OffPolicyBuilder[Config]):
    """Q-learning with a deep network."""

    def policy(self, seed: int) -> PolicyParts:
        """See OffPolicyBuilder; now and then an action is drawn from all of them."""
        settings, parts = self.config.settings, super().policy(seed)
        keys = settings.exploration

        def epsilon_greedy(policy: CurrentPolicy, random: np.random.Generator) -> NoiseSource:
            return EpsilonGreedy(
                settings.action_size,
                keys.epsilon,
                lambda: policy.global_t,
                random,
                Ladder(keys.rungs, parts.places),
                keys.exponent,
            )

        return replace(parts, make_noise=epsilon_greedy)

    def update(self, variables: Callable[..., Any]) -> Update:
        """See OffPolicyBuilder."""
        from .method_tf import TARGET, QLearning

        config, settings = self.config, self.config.settings
        return QLearning(
            config.network,
            config.actions,
            variables({TARGET: POLICY_VARIABLE}),
            settings.target_rate,
            settings.target_every,
            settings.double,
            settings.gradient_norm_clipping,
            None if settings.mask is None else settings.mask.name,
        )

"""Wires SAC: the one place that reads the configuration, and hands values to parts."""

from collections.abc import Callable
from typing import Any

import numpy as np

from relaax.assembly import OffPolicyBuilder
from relaax.learning.off_policy import Update
from relaax.learning.off_policy.critics import CRITICS
from relaax.learning.off_policy.settings import FloatArray

from .config import Config


class SacBuilder(OffPolicyBuilder[Config]):
    """Soft actor-critic."""

    def update(self, variables: Callable[..., Any]) -> Update:
        """See OffPolicyBuilder."""
        from relaax.learning.distributions.graph_tf import graph_of

        from .method_tf import TARGETS, SoftActorCritic

        config = self.config
        graph: Any = graph_of(config.actions)
        return SoftActorCritic(
            config.network,
            config.critic,
            graph,
            variables({TARGETS: CRITICS}),
            config.settings.target_rate,
            config.target_entropy,
        )

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Return the noise that actions are drawn with, the present ones and the next ones."""
        numbers = self.config.actions.gaussian.actions
        return random.standard_normal((2, count, numbers), np.float32)

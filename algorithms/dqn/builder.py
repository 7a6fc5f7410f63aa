"""Wires DQN: the one place that reads the configuration, and hands values to parts."""

from collections.abc import Callable
from typing import Any

from relaax.assembly import OffPolicyBuilder
from relaax.learning.off_policy import Update
from relaax.learning.off_policy.config import POLICY_VARIABLE

from .config import Config


class DqnBuilder(OffPolicyBuilder[Config]):
    """Q-learning with a deep network."""

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

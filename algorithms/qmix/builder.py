"""Wires QMIX: the one place that reads the configuration, and hands values to parts."""

from collections.abc import Callable
from typing import Any

from relaax.assembly import OffPolicyBuilder
from relaax.learning.off_policy import Update
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.observations import UNNAMED

from .config import MIXER, Config


class QmixBuilder(OffPolicyBuilder[Config]):
    """Q-learning of a team."""

    def update(self, variables: Callable[..., Any]) -> Update:
        """See OffPolicyBuilder."""
        from .method_tf import TARGET, TARGET_MIXER, Mixer, TeamQLearning

        config, settings = self.config, self.config.settings
        followers = {TARGET: POLICY_VARIABLE}
        if config.mixer is not None:
            followers[TARGET_MIXER] = MIXER
        name, _ = settings.observed
        state = settings.mixer_state or (None if name == UNNAMED else name)
        return TeamQLearning(
            config.network,
            config.actions,
            Mixer(config.mixer, state),
            variables(followers),
            settings.target_rate,
            settings.target_every,
            settings.double,
            settings.gradient_norm_clipping,
            settings.mask_name,
        )

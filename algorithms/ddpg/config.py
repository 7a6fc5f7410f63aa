"""The configuration of DDPG, as the servers want it."""

from collections.abc import Mapping
from typing import Any

from relaax.learning.distributions import Deterministic
from relaax.learning.networks import POLICY, Head, Network
from relaax.learning.off_policy import OffPolicyConfig
from relaax.learning.off_policy.config import network_of
from relaax.learning.off_policy.critics import critic_of
from relaax.spaces import Space, box

from .settings import Settings


class Config(OffPolicyConfig):
    """The typed settings, checked once, and what they make."""

    algorithm = "ddpg"
    heads = (POLICY,)

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.settings: Settings = Settings.model_validate(dict(config))
        self.actions: Deterministic = Deterministic(*self.settings.bounds)
        self.network = network_of(self.settings, (Head(POLICY, self.actions.outputs),))
        self.critic = critic_of(self.network, self.settings.action_shape)

    @property
    def networks(self) -> tuple[Network, ...]:
        """Policy and critics."""
        return (self.network, *[self.critic] * self.settings.critics)

    def action_space(self) -> Space:
        """Return the space of actions."""
        return box("float32", self.settings.action_shape)

"""The configuration of SAC, as the servers want it."""

from collections.abc import Mapping
from math import prod
from typing import Any

from relaax.learning.distributions import SquashedGaussian
from relaax.learning.networks import POLICY, Head, Network
from relaax.learning.off_policy import OffPolicyConfig
from relaax.learning.off_policy.config import network_of
from relaax.learning.off_policy.critics import critic_of
from relaax.spaces import Space, box

from .settings import Settings


class Config(OffPolicyConfig):
    """The typed settings, checked once, and what they make."""

    algorithm = "sac"
    heads = (POLICY,)

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.settings: Settings = Settings.model_validate(dict(config))
        low, high = self.settings.bounds
        self.actions: SquashedGaussian = SquashedGaussian(low, high, sigma="bounded_exp")
        self.network = network_of(self.settings, (Head(POLICY, self.actions.outputs),))
        self.critic = critic_of(self.network, self.settings.action_shape)

    @property
    def target_entropy(self) -> float:
        """The entropy that the temperature is moved for; appendix D of the paper."""
        given = self.settings.target_entropy
        return -float(prod(self.settings.action_shape)) if given is None else given

    @property
    def networks(self) -> tuple[Network, ...]:
        """Policy and critic."""
        return (self.network, self.critic)

    def action_space(self) -> Space:
        """Return the space of actions."""
        return box("float32", self.settings.action_shape)

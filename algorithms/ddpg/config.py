"""The configuration of DDPG, as the servers want it."""

from collections.abc import Mapping
from typing import Any

from relaax.algorithm_base import FloatVector
from relaax.learning.action_units import ActionUnits
from relaax.learning.distributions import Deterministic
from relaax.learning.networks import POLICY, Head, Network
from relaax.learning.off_policy import OffPolicyConfig
from relaax.learning.off_policy.config import POLICY_VARIABLE, network_of
from relaax.learning.off_policy.critics import CRITICS, critic_of, initial_critics
from relaax.spaces import Space

from .settings import Settings


class Config(OffPolicyConfig):
    """The typed settings, checked once, and the networks that they describe."""

    algorithm = "ddpg"
    heads = (POLICY,)

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.settings: Settings = Settings.model_validate(dict(config))
        self.actions: Deterministic = Deterministic(self.settings.action_shape)
        self.action_units: ActionUnits = self.settings.units
        self.network = network_of(self.settings, (Head(POLICY, self.actions.outputs),))
        self.critic = critic_of(self.network, self.settings.action_shape)

    @property
    def learning_rates(self) -> dict[str, float]:
        """The learning rates of policy and critics."""
        return {
            POLICY_VARIABLE: self.settings.policy_learning_rate,
            CRITICS: self.settings.critic_learning_rate,
        }

    def initial(self, seed: int | None) -> dict[str, FloatVector]:
        """Return policy and critics as they are at first."""
        critics = initial_critics(self.critic, self.settings.critics, seed)
        return {**super().initial(seed), CRITICS: critics}

    @property
    def networks(self) -> tuple[Network, ...]:
        """Policy and critics."""
        return (self.network, *[self.critic] * self.settings.critics)

    def action_space(self) -> Space:
        """Return the space of actions."""
        return self.action_units.space

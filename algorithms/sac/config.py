"""The configuration of SAC, as the servers want it."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from relaax.algorithm_base import FloatVector
from relaax.learning.action_units import ActionUnits
from relaax.learning.distributions import SquashedGaussian
from relaax.learning.networks import POLICY, Head, Network
from relaax.learning.off_policy import OffPolicyConfig
from relaax.learning.off_policy.config import POLICY_VARIABLE, network_of
from relaax.learning.off_policy.critics import CRITICS, critic_of, initial_critics
from relaax.spaces import Space

from .settings import Settings

#: The name of the temperature among what is learnt.
LOG_TEMPERATURE = "log_temperature"


class Config(OffPolicyConfig):
    """The typed settings, checked once, and the networks that they describe."""

    algorithm = "sac"
    heads = (POLICY,)

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.settings: Settings = Settings.model_validate(dict(config))
        shape = self.settings.action_shape
        self.actions: SquashedGaussian = SquashedGaussian(shape, sigma="bounded_exp")
        self.action_units: ActionUnits = self.settings.units
        self.network = network_of(self.settings, (Head(POLICY, self.actions.outputs),))
        self.critic = critic_of(self.network, shape)

    @property
    def target_entropy(self) -> float:
        """The entropy that the temperature is moved for; appendix D of the paper."""
        given = self.settings.target_entropy
        return -float(prod(self.settings.action_shape)) if given is None else given

    @property
    def learning_rates(self) -> dict[str, float]:
        """The learning rates of policy, critics and temperature."""
        return {
            POLICY_VARIABLE: self.settings.policy_learning_rate,
            CRITICS: self.settings.critic_learning_rate,
            LOG_TEMPERATURE: self.settings.temperature_learning_rate,
        }

    def initial(self, seed: int | None) -> dict[str, FloatVector]:
        """Return policy, critics and temperature as they are at first."""
        log_temperature = np.log([self.settings.initial_temperature])
        return {
            **super().initial(seed),
            CRITICS: initial_critics(self.critic, 2, seed),
            LOG_TEMPERATURE: log_temperature.astype(np.float32),
        }

    @property
    def networks(self) -> tuple[Network, ...]:
        """Policy and critic."""
        return (self.network, self.critic)

    def action_space(self) -> Space:
        """Return the space of actions."""
        return self.action_units.space

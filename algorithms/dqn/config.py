"""The configuration of DQN, as the servers want it."""

from collections.abc import Mapping
from typing import Any

from relaax.learning.distributions import ActionValues
from relaax.learning.off_policy import OffPolicyConfig
from relaax.learning.off_policy.config import POLICY_VARIABLE, heads_of, network_of
from relaax.spaces import Space

from .settings import Settings


class Config(OffPolicyConfig):
    """The typed settings, checked once, and the networks that they describe."""

    algorithm = "dqn"

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.settings: Settings = Settings.model_validate(dict(config))
        self.actions: ActionValues = action_values_of(self.settings)
        self.network = network_of(self.settings, heads_of(self.settings, self.actions.atoms))
        self.heads = tuple(head.name for head in self.network.heads)

    @property
    def learning_rates(self) -> dict[str, float]:
        """The learning rate of the network."""
        return {POLICY_VARIABLE: self.settings.learning_rate}

    def action_space(self) -> Space:
        """Return the space of actions."""
        return {"type": "Discrete", "n": self.settings.action_size}


def action_values_of(settings: Settings) -> ActionValues:
    """Return the part that makes values and actions of the network's outputs."""
    section = settings.distributional
    if section is None:
        return ActionValues(settings.action_size, settings.dueling)
    return ActionValues(
        settings.action_size, settings.dueling, section.atoms, section.low, section.high
    )

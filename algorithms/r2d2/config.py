"""The configuration of R2D2, as the servers want it."""

from collections.abc import Mapping
from typing import Any

from relaax.learning.distributions import ActionValues
from relaax.learning.networks import LSTM, Dense, Layer, Network, default_network, read_network
from relaax.learning.off_policy import OffPolicyConfig
from relaax.learning.off_policy.config import POLICY_VARIABLE, heads_of
from relaax.learning.previous import previous_size
from relaax.spaces import Space, discrete

from .settings import Settings


class Config(OffPolicyConfig):
    """The typed settings, checked once, and the network that they describe."""

    algorithm = "r2d2"

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.settings: Settings = Settings.model_validate(dict(config))
        self.actions: ActionValues = ActionValues(self.settings.action_size, self.settings.dueling)
        self.network = network_of(self.settings, self.actions)
        self.heads = tuple(head.name for head in self.network.heads)

    @property
    def learning_rates(self) -> dict[str, float]:
        """The learning rate of the network."""
        return {POLICY_VARIABLE: self.settings.learning_rate}

    def action_space(self) -> Space:
        """Return the space of actions."""
        return discrete(self.settings.action_size)


def network_of(settings: Settings, actions: ActionValues) -> Network:
    """Return the network that a configuration describes; ValueError for one without a memory."""
    heads = heads_of(settings)
    if settings.network is None:
        dense = tuple(Dense(units) for units in settings.hidden_layers)
        layers: tuple[Layer, ...] = (*dense, LSTM(settings.lstm_size))
        return default_network(settings.inputs, layers, heads)
    network = read_network(settings.network, settings.inputs, heads, previous_size(actions))
    if not network.lstm_size:
        raise ValueError("network: r2d2 needs a layer lstm; dqn learns without a memory")
    return network

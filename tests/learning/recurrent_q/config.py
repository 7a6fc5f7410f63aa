"""The keys of the YAML's algorithm: section, and the network that they describe."""

from pydantic import PositiveInt

from relaax.learning.distributions import ActionValues
from relaax.learning.networks import LSTM, POLICY, Dense, Head, Network
from relaax.learning.off_policy import DiscreteSettings, OffPolicyConfig
from relaax.spaces import discrete


class Settings(DiscreteSettings):
    learning_rate: float = 1e-3
    #: Part of the way that the target follows at each update.
    target_rate: float = 0.02
    #: Steps that are learnt from together, and steps before them.
    rollout_len: PositiveInt = 8
    burn_in: PositiveInt = 8
    cells: PositiveInt = 32


class Config(OffPolicyConfig):
    algorithm = "recurrent Q-learning"

    def __init__(self, config):
        super().__init__(config)
        self.settings = keys = Settings.model_validate(dict(config))
        self.actions = ActionValues(keys.action_size)
        layers = (*(Dense(units) for units in keys.hidden_layers), LSTM(keys.cells))
        self.network = Network.of(keys.inputs, layers, (Head(POLICY, keys.action_size),))

    @property
    def learning_rates(self):
        return {POLICY: self.settings.learning_rate}

    def action_space(self):
        return discrete(self.settings.action_size)

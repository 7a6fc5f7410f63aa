"""The keys of the YAML's algorithm: section, and the network that they describe."""

from pydantic import PositiveFloat, PositiveInt

from relaax.learning.distributions import ActionValues
from relaax.learning.method_config import MethodConfig, MethodSettings
from relaax.learning.networks import POLICY, Head, Network
from relaax.learning.rollouts.labels import POLICY_NAME, POLICY_VERSION
from relaax.spaces import discrete


class Settings(MethodSettings):
    action_size: PositiveInt
    #: How many policies there are, a standard deviation from their mean, and episodes of each.
    candidates: PositiveInt = 16
    deviation: PositiveFloat = 0.5
    episodes: PositiveInt = 1
    #: Steps of the longest episode.
    longest: PositiveInt = 500
    step_size: PositiveFloat = 1.0


class Config(MethodConfig):
    """Steps carry the name of the policy that acted, and its version."""

    extras = (POLICY_NAME, POLICY_VERSION)

    def __init__(self, config):
        super().__init__(config)
        self.settings = keys = Settings.model_validate(dict(config))
        self.actions = ActionValues(keys.action_size)  # the action with the largest output
        self.network = Network.of(keys.inputs, (), (Head(POLICY, keys.action_size),))

    def action_space(self):
        return discrete(self.settings.action_size)

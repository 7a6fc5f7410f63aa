"""The keys of the YAML's algorithm: section, and the network that they describe."""

from relaax.learning.networks import POLICY, Dense, Encoder, Head, Network
from relaax.learning.on_policy import (
    VALUE,
    ActorCriticConfig,
    ActorCriticSettings,
    DiscreteSettings,
)


class Settings(DiscreteSettings, ActorCriticSettings):
    #: The observation that the critic alone sees.
    hidden: str


class Config(ActorCriticConfig):
    """Actor and critic share no layer: what they see is joined in front of their own ones."""

    def __init__(self, config):
        own = Settings.model_validate(dict(config))
        super().__init__(config, "asymmetric actor-critic", own, own.actions)
        layers = tuple(Dense(units) for units in own.dense_units)
        everything = tuple(own.inputs)
        seen = tuple(name for name in everything if name != own.hidden)
        self.network = Network(
            {name: Encoder(shape) for name, shape in own.inputs.items()},
            (),
            (
                Head(POLICY, self.actions.outputs, layers=layers, sees=seen),
                Head(VALUE, 1, layers=layers, sees=everything),
            ),
        )

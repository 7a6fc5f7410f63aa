"""The keys of the YAML's algorithm: section, and the network that they describe."""

from typing import Literal

from pydantic import PositiveFloat, PositiveInt

from relaax.learning.networks import POLICY, Dense, Head, Network
from relaax.learning.on_policy import VALUE, DiscreteSettings, PolicyConfig


class Settings(DiscreteSettings):
    learner: Literal["process"] = "process"
    #: Rollouts of a step, and how far it moves the policy.
    rollouts_per_batch: PositiveInt = 16
    largest_kl: PositiveFloat = 0.02
    learning_rate: PositiveFloat = 3e-3

    @property
    def rollouts_of_batch(self):
        return self.rollouts_per_batch


class Config(PolicyConfig):
    """Policy and value share no layer: a step of one leaves the other as it is."""

    def __init__(self, config):
        own = Settings.model_validate(dict(config))
        super().__init__(config, "natural gradient", own, own.actions)
        layers = tuple(Dense(units, "tanh") for units in own.dense_units)
        heads = {POLICY: self.actions.outputs, VALUE: 1}
        self.network = Network.of(
            own.inputs, (), tuple(Head(name, size, layers=layers) for name, size in heads.items())
        )

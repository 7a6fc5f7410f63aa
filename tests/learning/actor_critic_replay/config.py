"""The keys of the YAML's algorithm: section, and the network that they describe."""

from typing import Literal

from pydantic import PositiveFloat, PositiveInt

from relaax.learning.networks import Head
from relaax.learning.on_policy import DiscreteSettings, PolicyConfig
from relaax.learning.rollouts import DISTRIBUTION

#: The head of the values of all actions.
ACTION_VALUES = "action_values"


class Settings(DiscreteSettings):
    learner: Literal["process"] = "process"
    #: Rollouts of a step: the newest, and some that were stored at any time.
    fresh: PositiveInt = 8
    replayed: PositiveInt = 32
    #: Up to this, importance weights are taken as they are.
    largest_weight: PositiveFloat = 10.0
    learning_rate: PositiveFloat = 2e-3
    entropy_beta: PositiveFloat = 0.01

    @property
    def rollouts_of_batch(self):
        return self.fresh


class Config(PolicyConfig):
    """Behind each action the distribution is recorded that it was drawn from."""

    extras = (DISTRIBUTION,)

    def __init__(self, config):
        own = Settings.model_validate(dict(config))
        critic = Head(ACTION_VALUES, own.actions.distribution.outputs)
        super().__init__(config, "actor-critic with replay", own, own.actions, critic)

"""The keys of the YAML's algorithm: section."""

from collections.abc import Mapping
from typing import Any

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from relaax.algorithm_base import ConfigBase, Section
from relaax.learning.distributions import DiagonalGaussian
from relaax.learning.networks import POLICY, Dense, Head, Network


class Keys(Section):
    """Sizes and rates."""

    state_size: PositiveInt
    action_size: PositiveInt
    #: Steps of a rollout; episodes should be as long.
    episode_len: PositiveInt
    learning_rate: PositiveFloat = 0.005
    discount: PositiveFloat = 0.8
    seed: NonNegativeInt = 0


class Config(ConfigBase):
    """The keys, and what they describe."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.keys = Keys.model_validate(dict(config))
        self.distribution = DiagonalGaussian((self.keys.action_size,), sigma="exp")
        self.network = Network.of(
            (self.keys.state_size,), (Dense(32),), (Head(POLICY, self.distribution.outputs),)
        )

"""The keys of the YAML's algorithm: section."""

from collections.abc import Mapping
from typing import Any

from relaax.algorithm_base import ConfigBase
from relaax.learning.distributions import DiagonalGaussian
from relaax.learning.networks import POLICY, Dense, Head, Network


class Config(ConfigBase):
    """Sizes and rates."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.state_size = int(config["state_size"])
        self.action_size = int(config["action_size"])
        self.episode_len = int(config["episode_len"])
        self.learning_rate = float(config.get("learning_rate", 0.005))
        self.discount = float(config.get("discount", 0.8))
        self.seed = int(config.get("seed", 0))
        self.distribution = DiagonalGaussian((self.action_size,), sigma="exp")
        self.network = Network.of(
            (self.state_size,), (Dense(32),), (Head(POLICY, self.distribution.outputs),)
        )

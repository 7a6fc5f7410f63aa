"""The keys of the YAML's algorithm: section."""

from collections.abc import Mapping
from typing import Any

from relaax.algorithm_base import ConfigBase


class Config(ConfigBase):
    """Sizes, and how far a perturbation goes."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.state_size = int(config["state_size"])
        self.action_size = int(config["action_size"])
        self.noise = float(config.get("noise", 0.5))
        if self.noise <= 0:
            raise ValueError(f"noise: must be greater than 0, is {self.noise}")

    @property
    def weights(self) -> int:
        """How many numbers a policy has."""
        return self.state_size * self.action_size

"""The configuration of DA3C."""

from collections.abc import Mapping
from typing import Any

from relaax.algorithm_base import ConfigBase
from relaax.spaces import Space, discrete

from .networks import network_of
from .settings import Settings


class Config(ConfigBase):
    """DA3C's configuration, checked once: the typed settings, and the network they make."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.settings = Settings.model_validate(dict(config))
        self.network = network_of(self.settings)

    def observation_space(self) -> Space:
        """Return arrays of numbers of ``state_size``."""
        return {"type": "Box", "shape": list(self.settings.state_size)}

    def action_space(self) -> Space:
        """Return ``action_size`` discrete actions."""
        return discrete(self.settings.action_size)

    def uses_gpu(self) -> bool:
        """Return whether TensorFlow sees the GPU."""
        return self.settings.gpu

"""The configuration of DA3C."""

from collections.abc import Mapping
from typing import Any

from relaax.algorithm_base import ConfigBase
from relaax.observations import Shape
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
        """Return arrays of numbers of ``state_size``, by name if it has names; so is the mask."""
        size, mask = self.settings.state_size, self.settings.action_mask
        if not isinstance(size, dict):
            return _box(size)
        if mask is not None:
            size = {**size, mask: (self.settings.action_size,)}
        return {"type": "Dict", "spaces": {name: _box(shape) for name, shape in size.items()}}

    def action_space(self) -> Space:
        """Return ``action_size`` discrete actions."""
        return discrete(self.settings.action_size)

    def uses_gpu(self) -> bool:
        """Return whether TensorFlow sees the GPU."""
        return self.settings.gpu


def _box(shape: Shape) -> Space:
    return {"type": "Box", "shape": list(shape)}

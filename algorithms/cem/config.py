"""The configuration of the cross-entropy method, as the servers want it."""

from collections.abc import Mapping
from typing import Any

from relaax.learning.population import PopulationConfig

from .settings import Settings


class Config(PopulationConfig):
    """The typed settings, checked once, and the policy that they describe."""

    algorithm = "cem"
    settings: Settings

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config, Settings.model_validate(dict(config)))

    def own_numbers(self) -> tuple[float, ...]:
        """See PopulationConfig: the deviation of each parameter."""
        return (self.settings.initial_std,) * self.network.manifest.size

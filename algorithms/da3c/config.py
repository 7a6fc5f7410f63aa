"""The configuration of DA3C."""

from collections.abc import Mapping
from typing import Any

from relaax.learning.actor_critic import ActorCriticConfig

from .settings import Settings


class Config(ActorCriticConfig):
    """An actor-critic that draws one of several actions, several at once, or bits."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        own = self._own = Settings.model_validate(dict(config))
        size = own.action_size
        super().__init__(
            config,
            "da3c",
            own,
            own.distribution,
            own.action_space,
            action_size=size if isinstance(size, int) else list(size or ()),
        )

    def fingerprint(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on, as JSON values."""
        bits = self._own.bits_shape
        return {**super().fingerprint(), **({"action_bits": bits} if bits else {})}

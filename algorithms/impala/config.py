"""The configuration of IMPALA."""

from collections.abc import Mapping
from typing import Any

from relaax.learning.on_policy import ActorCriticConfig

from .settings import Settings


class Config(ActorCriticConfig):
    """An actor-critic that draws one of several actions, several at once, or bits."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        own = Settings.model_validate(dict(config))
        super().__init__(config, "impala", own, own.actions)

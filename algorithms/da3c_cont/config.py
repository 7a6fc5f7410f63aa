"""The configuration of da3c_cont."""

from collections.abc import Mapping
from typing import Any

from relaax.learning.on_policy import ActorCriticConfig

from .settings import Settings


class Config(ActorCriticConfig):
    """An actor-critic that draws each number of an action from a normal distribution."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        own = Settings.model_validate(dict(config))
        super().__init__(config, "da3c_cont", own, own.actions)

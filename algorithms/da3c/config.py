"""The configuration of DA3C."""

from collections.abc import Mapping
from typing import Any

from relaax.learning.actor_critic import ActorCriticConfig
from relaax.learning.distributions import Categorical
from relaax.spaces import discrete

from .settings import Settings


class Config(ActorCriticConfig):
    """An actor-critic that draws one of several actions from their logits."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        settings = Settings.model_validate(dict(config))
        actions = settings.action_size
        super().__init__(
            config,
            "da3c",
            settings,
            Categorical(actions),
            discrete(actions),
            action_size=actions,
        )

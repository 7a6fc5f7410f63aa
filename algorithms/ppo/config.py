"""The configuration of PPO, as the servers want it."""

from collections.abc import Mapping
from typing import Any

from relaax.learning.on_policy import PolicyConfig

from .settings import ContinuousPpo, DiscretePpo, settings_of


class Config(PolicyConfig):
    """The typed settings, checked once, and the networks that they describe."""

    settings: DiscretePpo | ContinuousPpo
    #: Its name in checkpoints; derive another algorithm with other keys.
    name = "ppo"

    def __init__(self, config: Mapping[str, Any]) -> None:
        own = self.settings_of(config)
        super().__init__(config, self.name, own, own.actions)
        if self.network.lstm_size and own.minibatches > own.rollouts_per_batch:
            raise ValueError(
                f"minibatches: a batch has {own.rollouts_per_batch} rollouts (rollouts_per_batch), "
                f"which with a recurrent layer are not divided into {own.minibatches}"
            )

    def settings_of(self, section: Mapping[str, Any]) -> DiscretePpo | ContinuousPpo:
        """Return the typed keys of a section."""
        return settings_of(section)

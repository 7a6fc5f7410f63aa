"""The configuration of an algorithm under Surreal's names."""

from collections.abc import Mapping
from typing import Any, ClassVar

from relaax.algorithm_base import ConfigBase
from relaax.learning.shapes import action_shape_of, space_of_states
from relaax.spaces import Space, box, discrete
from relaax.surreal.settings import Settings


class Config(ConfigBase):
    """The typed settings: Surreal's ``learner_config`` and ``env_config`` in one.

    With settings of your own, derive from it and name their class in ``settings_class``.
    """

    settings_class: ClassVar[type[Settings]] = Settings

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.settings: Any = self.settings_class.model_validate(dict(config))
        size = self.settings.action_size
        if not self.settings.continuous and not isinstance(size, int):
            raise ValueError("action_size: of discrete actions it is their number; else continuous")

    def observation_space(self) -> Space:
        """Return arrays of numbers of ``state_size``, by name if it has names."""
        return space_of_states(self.settings.state_size)

    def action_space(self) -> Space:
        """Return the space of actions."""
        if self.settings.continuous:
            return box("float32", action_shape_of(self.settings.action_size))
        return discrete(self.settings.action_size)

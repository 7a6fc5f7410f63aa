"""Which keys the YAML's ``algorithm:`` section has."""

from collections.abc import Mapping
from typing import Any

from pydantic import PositiveFloat, PositiveInt

from relaax.algorithm_base import ConfigBase, Section
from relaax.spaces import Space, box, discrete


class Keys(Section):
    """Each field is a key; one without a default must be given."""

    #: Length of a state, which is a vector.
    state_size: PositiveInt
    #: Number of actions.
    action_size: PositiveInt
    #: How far the weights of an episode are from the best ones: a standard deviation.
    noise: PositiveFloat = 0.5
    #: Environment steps of all agents together after which the training is over.
    max_global_step: PositiveFloat = 1e6


class Config(ConfigBase):
    """The section, checked and typed."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.keys = Keys.model_validate(dict(config))

    @property
    def weights_shape(self) -> tuple[int, int]:
        """A row of weights for each action."""
        return self.keys.action_size, self.keys.state_size

    def observation_space(self) -> Space:
        """Return the states that a client must have, else it is refused."""
        return box("float32", (self.keys.state_size,))

    def action_space(self) -> Space:
        """Return the actions that a client must have."""
        return discrete(self.keys.action_size)

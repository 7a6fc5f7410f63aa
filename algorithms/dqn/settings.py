"""The keys of DQN's section in the YAML file."""

from typing import Annotated

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base import Section
from relaax.algorithm_base.config_base import SWITCHED
from relaax.learning.off_policy import ActionValueSettings


class DistributionalSection(Section):
    """The distribution of returns instead of their mean: C51."""

    atoms: int = Field(51, ge=2)
    #: The lowest and the highest return that has a probability.
    low: float = -10.0
    high: float = 10.0

    @model_validator(mode="after")
    def _is_a_range(self) -> "DistributionalSection":
        if self.low >= self.high:
            raise ValueError("low must be below high")
        return self


class Settings(ActionValueSettings):
    """The keys of the ``algorithm:`` section."""

    #: Choose the action behind a step with the network, and value it with its target.
    double: bool = True
    #: Learn the distribution of returns: ``true``, or a section.
    distributional: Annotated[DistributionalSection | None, SWITCHED] = None

    batch_size: PositiveInt = 64
    updates_per_step: PositiveFloat | None = 0.5
    learning_starts: PositiveInt = 1_000

"""The keys of DQN's section in the YAML file."""

from collections.abc import Iterator
from typing import Any

from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator

from relaax.algorithm_base import Section
from relaax.learning.off_policy import DiscreteSettings


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


class Settings(DiscreteSettings):
    """The keys of the ``algorithm:`` section."""

    #: Choose the action behind a step with the network, and value it with its target.
    double: bool = True
    #: Value states and the advantages of actions apart.
    dueling: bool = False
    #: Units of the last layer of each of these two; none by default.
    stream_layers: tuple[PositiveInt, ...] = ()
    #: Learn the distribution of returns: ``true``, or a section.
    distributional: DistributionalSection | None = None
    learning_rate: PositiveFloat = 1e-3
    #: The longest gradient; longer ones are scaled down. None leaves them.
    gradient_norm_clipping: PositiveFloat | None = 10.0
    #: Part of the way that the target follows the network: 1 copies it.
    target_rate: float = Field(1.0, gt=0, le=1)
    #: Updates from one such move to the next.
    target_every: PositiveInt = 500

    batch_size: PositiveInt = 64
    updates_per_step: PositiveFloat | None = 0.5
    learning_starts: PositiveInt = 1_000

    @field_validator("distributional", mode="before")
    @classmethod
    def _distributional_switch(cls, value: Any) -> Any:
        return ({} if value else None) if isinstance(value, bool) else value

    @field_validator("stream_layers", mode="before")
    @classmethod
    def _stream_sequence(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    def doubts(self) -> Iterator[str]:
        """Yield warnings: sentences about values that are allowed, and hardly meant."""
        yield from super().doubts()
        yield from self.doubts_of_target(self.target_every)

    @model_validator(mode="after")
    def _has_streams(self) -> "Settings":
        if self.stream_layers and not self.dueling:
            raise ValueError("stream_layers need dueling: true")
        return self

"""The keys of the section of the cross-entropy method in the YAML file."""

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from relaax.learning.population import PopulationSettings


class Settings(PopulationSettings):
    """The keys of the ``algorithm:`` section."""

    initialization: Literal["uniform", "orthogonal", "zeros"] = "zeros"
    hidden_layers: tuple[PositiveInt, ...] = ()
    #: The standard deviation of candidates' parameters at first.
    initial_std: PositiveFloat = 1.0
    #: The part of the candidates that the next ones are drawn like.
    elite_fraction: float = Field(0.2, gt=0, le=1)
    #: Noise that is added to their deviation, and falls to 0 in so many generations.
    extra_std: float = Field(0.0, ge=0)
    std_decay_generations: PositiveInt = 100

    @property
    def elites(self) -> int:
        """How many candidates are elites."""
        return max(1, round(self.candidates * self.elite_fraction))

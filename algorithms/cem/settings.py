"""The keys of the section of the cross-entropy method in the YAML file."""

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base.config_base import LISTED, require_effect
from relaax.learning.population import PopulationSettings


class Settings(PopulationSettings):
    """The keys of the ``algorithm:`` section."""

    initialization: Literal["uniform", "orthogonal", "zeros"] = "zeros"
    hidden_layers: Annotated[tuple[PositiveInt, ...], LISTED] = ()
    candidates: int = Field(64, ge=2)
    #: The standard deviation of candidates' parameters at first, without the extra one.
    initial_std: PositiveFloat = 1.0
    #: Share of the candidates that the next distribution is fitted to.
    elite_fraction: float = Field(0.2, gt=0, lt=1)
    #: Its square is added to the elites' variance, and falls to 0 in so many generations.
    extra_std: float = Field(0.0, ge=0)
    std_decay_generations: PositiveInt = 100

    @model_validator(mode="after")
    def _goes_on(self) -> "Settings":
        if not self.extra_std:
            require_effect(self, ("std_decay_generations",), "extra_std")
        if self.elites < 2:
            raise ValueError(
                f"elite_fraction: {self.elite_fraction:g} of {self.candidates} candidates is one "
                "elite, which has no deviation: take more candidates, or a larger fraction"
            )
        return self

    @property
    def elites(self) -> int:
        """How many candidates are elites."""
        return max(1, round(self.candidates * self.elite_fraction))

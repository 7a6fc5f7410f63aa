"""The keys of the section of evolution strategies in the YAML file."""

from pydantic import Field, PositiveFloat, model_validator

from relaax.learning.population import PopulationSettings


class Settings(PopulationSettings):
    """The keys of the ``algorithm:`` section."""

    #: The standard deviation of candidates' parameters from their mean.
    sigma: PositiveFloat = 0.1
    #: Adam's, for their mean.
    learning_rate: PositiveFloat = 0.02
    #: Each step shrinks the mean by this part of it, times the learning rate.
    weight_decay: float = Field(0.005, ge=0)

    @model_validator(mode="after")
    def _are_pairs(self) -> "Settings":
        if self.candidates % 2:
            raise ValueError(
                f"candidates: {self.candidates} are no pairs: each has a mirrored one, so that "
                "their number is even"
            )
        return self

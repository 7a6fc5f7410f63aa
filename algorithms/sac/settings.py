"""The keys of SAC's section in the YAML file."""

from math import log, prod

from pydantic import Field, PositiveFloat, model_validator

from relaax.learning.off_policy import ContinuousSettings


class Settings(ContinuousSettings):
    """The keys of the ``algorithm:`` section."""

    #: Part of the way that target critics follow the critics at each update.
    target_rate: float = Field(0.005, gt=0, le=1)
    policy_learning_rate: PositiveFloat = 3e-4
    critic_learning_rate: PositiveFloat = 3e-4
    temperature_learning_rate: PositiveFloat = 3e-4
    initial_temperature: PositiveFloat = 1.0
    #: The entropy that the temperature is moved for; None: minus one for each number of an action.
    target_entropy: float | None = None

    @model_validator(mode="after")
    def _has_an_entropy_that_exists(self) -> "Settings":
        # Of actions that are drawn evenly between -1 and 1, each number of them.
        highest = prod(self.action_shape) * log(2)
        if self.target_entropy is not None and self.target_entropy >= highest:
            raise ValueError(
                f"target_entropy: {self.target_entropy:g} is not reached by any policy: actions "
                f"that are drawn evenly have {highest:.4g}, and the default is "
                f"{-prod(self.action_shape)}"
            )
        return self

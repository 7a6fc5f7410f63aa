"""The keys of SAC's section in the YAML file."""

from pydantic import Field, PositiveFloat

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

"""The keys of da3c_cont's section in the YAML file."""

from pydantic import Field, PositiveFloat, PositiveInt

from relaax.learning.filters import FilterSettings
from relaax.learning.on_policy import ActorCriticSettings, ContinuousSettings


class Settings(ContinuousSettings, ActorCriticSettings, FilterSettings):
    """The keys of the ``algorithm:`` section; seed 003, "Distributed A3C Continuous"."""

    lstm: bool = True
    lstm_size: PositiveInt = 128
    initial_learning_rate: PositiveFloat = 1e-4
    entropy_beta: float = Field(0.001, ge=0)

    @property
    def dense_units(self) -> tuple[int, ...]:
        """Units of the dense layers, the default filled in."""
        return (128,) if self.hidden_layers is None else self.hidden_layers

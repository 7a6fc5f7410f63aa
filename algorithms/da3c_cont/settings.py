"""The keys of da3c_cont's section in the YAML file."""

from typing import Any, Literal, TypeAlias

from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator

from relaax.learning.actor_critic import ActorCriticSettings

#: One number for all actions, or a number for each; None where there is no bound.
Bound: TypeAlias = float | tuple[float, ...] | None


class Settings(ActorCriticSettings):
    """The keys of the ``algorithm:`` section; seed 003, "Distributed A3C Continuous"."""

    #: How many numbers an action has.
    action_size: PositiveInt
    #: Bounds of actions. Actions beyond them are cut off in the environment, after their likelihood
    #: has been computed.
    action_low: Bound = None
    action_high: Bound = None
    #: Whether the standard deviations depend on the state, as in the seed, or are parameters.
    sigma: Literal["state", "free"] = "state"
    #: The standard deviations of a training's first actions, with ``sigma: free``.
    initial_sigma: PositiveFloat = 1.0
    #: Give states mean 0 and standard deviation 1; images stay as they are.
    filter_states: bool = True
    #: Divide rewards by their root mean square.
    filter_rewards: bool = False

    hidden_layers: tuple[PositiveInt, ...] | None = None
    lstm: bool = True
    lstm_size: PositiveInt = 128
    initial_learning_rate: PositiveFloat = 1e-4
    entropy_beta: float = Field(0.001, ge=0)

    @property
    def dense_units(self) -> tuple[int, ...]:
        """Units of the dense layers, the default filled in."""
        return (128,) if self.hidden_layers is None else self.hidden_layers

    @field_validator("action_low", "action_high", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(float(each) if isinstance(each, int) else each for each in value)
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _bounds_fit(self) -> "Settings":
        for key, bound in (("action_low", self.action_low), ("action_high", self.action_high)):
            if isinstance(bound, tuple) and len(bound) != self.action_size:
                raise ValueError(
                    f"{key} has {len(bound)} numbers, and an action has {self.action_size}"
                )
        low, high = self.bounds
        if any(below >= above for below, above in zip(low, high, strict=True)):
            raise ValueError("action_low must lie below action_high")
        return self

    @property
    def bounds(self) -> tuple[list[float], list[float]]:
        """The lowest and the highest value of each number, infinite where there is no bound."""
        return (
            _spread(self.action_low, -float("inf"), self.action_size),
            _spread(self.action_high, float("inf"), self.action_size),
        )


def _spread(bound: Bound, missing: float, count: int) -> list[float]:
    if isinstance(bound, tuple):
        return list(bound)
    return [missing if bound is None else bound] * count

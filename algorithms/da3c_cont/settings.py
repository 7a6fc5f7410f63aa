"""The keys of da3c_cont's section in the YAML file."""

from collections.abc import Sequence
from math import isnan
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import (
    Field,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from relaax.learning.actor_critic import ActorCriticSettings
from relaax.learning.shapes import CountOrSizes, action_shape_of
from relaax.observations import Shape

FloatArray = npt.NDArray[np.float32]

#: One number for all of an action, or nested sequences of the action's shape; None: no bound.
Bound: TypeAlias = float | Sequence[Any] | None


class Settings(ActorCriticSettings):
    """The keys of the ``algorithm:`` section; seed 003, "Distributed A3C Continuous"."""

    #: How many numbers an action has, or the shape of an array of them; ``[]`` for a number alone.
    action_size: CountOrSizes
    #: Bounds of actions. Actions beyond them are cut off in the environment, after their likelihood
    #: has been computed.
    action_low: Bound = None
    action_high: Bound = None
    #: Whether the standard deviations depend on the state, as in the seed, or are parameters.
    sigma: Literal["state", "free"] = "state"
    #: The standard deviations of a training's first actions, with ``sigma: free``.
    initial_sigma: float = Field(1.0, gt=0, allow_inf_nan=False)
    #: Give states mean 0 and standard deviation 1; images stay as they are.
    filter_states: bool = True
    #: Divide rewards by their root mean square.
    filter_rewards: bool = False

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
        return None if value is None else _numbers_in(value)

    @model_validator(mode="after")
    def _uses_initial_sigma(self) -> "Settings":
        if self.sigma == "state" and "initial_sigma" in self.model_fields_set:
            raise ValueError(
                "initial_sigma needs sigma: free; with sigma: state the first standard deviations "
                "are what the network puts out"
            )
        return self

    @model_validator(mode="after")
    def _bounds_fit(self) -> "Settings":
        low, high = self.bounds
        if (low >= high).any():
            raise ValueError("action_low must lie below action_high")
        return self

    @property
    def action_shape(self) -> Shape:
        """The shape of an action; () for a number."""
        return action_shape_of(self.action_size)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest actions, of their shape; infinite where there is no bound."""
        return (
            _spread("action_low", self.action_low, -np.inf, self.action_shape),
            _spread("action_high", self.action_high, np.inf, self.action_shape),
        )


def _numbers_in(value: Any) -> Any:
    """Return a number as a float, and lists as tuples of such; ValueError for anything else."""
    if isinstance(value, list | tuple):
        return tuple(_numbers_in(each) for each in value)
    if isinstance(value, bool) or not isinstance(value, int | float) or isnan(value):
        raise ValueError(f"a bound is a number, or lists of numbers, not {value}")
    return float(value)


def _spread(key: str, bound: Bound, missing: float, shape: Shape) -> FloatArray:
    """Return ``bound`` as an array of ``shape``; ValueError for one of another shape."""
    if not isinstance(bound, tuple):
        return np.full(shape, missing if bound is None else bound, np.float32)
    try:
        array = np.array(bound, np.float32)
    except ValueError as error:
        raise ValueError(f"{key} has lists of different lengths") from error
    if array.shape != shape:
        raise ValueError(f"{key} has the shape {list(array.shape)}, and an action {list(shape)}")
    return array

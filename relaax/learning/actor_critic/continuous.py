"""The keys that describe continuous actions in the YAML file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, log, prod
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator, model_validator

from relaax.learning.actor_critic.policy_settings import PolicySettings
from relaax.learning.distributions import DiagonalGaussian, Distribution
from relaax.learning.networks import POLICY, Head
from relaax.learning.shapes import CountOrSizes, action_shape_of
from relaax.observations import Shape
from relaax.spaces import Space, box

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Actions:
    """How actions are drawn, and what is said of them elsewhere."""

    distribution: Distribution
    space: Space
    #: How many actions there are, or numbers in an action, as checkpoints have it.
    size: int | list[int]
    #: What else a checkpoint must agree on, as JSON values.
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    #: The head that puts out what the distribution is made of; None: all depends on the state.
    policy: Head | None = None
    #: The lowest and the highest actions that an environment takes; None if any.
    bounds: tuple[FloatArray, FloatArray] | None = None

    @property
    def head(self) -> Head:
        """The head, the default filled in."""
        return self.policy or Head(POLICY, self.distribution.outputs)


#: One number for all of an action, or nested sequences of the action's shape; None: no bound.
Bound: TypeAlias = float | Sequence[Any] | None


class ContinuousSettings(PolicySettings):
    """Actions that are arrays of numbers."""

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

    @field_validator("action_low", "action_high", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        return None if value is None else _numbers_in(value)

    @model_validator(mode="after")
    def _uses_initial_sigma(self) -> "ContinuousSettings":
        if self.sigma == "state" and "initial_sigma" in self.model_fields_set:
            raise ValueError(
                "initial_sigma needs sigma: free; with sigma: state the first standard deviations "
                "are what the network puts out"
            )
        return self

    @model_validator(mode="after")
    def _bounds_fit(self) -> "ContinuousSettings":
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

    @property
    def actions(self) -> Actions:
        """What actions are to the rest of the algorithm."""
        shape, count, is_free = self.action_shape, prod(self.action_shape), self.sigma == "free"
        policy = Head(POLICY, 2 * count)
        if is_free:
            policy = Head(POLICY, count, count, log(self.initial_sigma))
        low, high = self.bounds
        has_bounds = not (np.isinf(low).all() and np.isinf(high).all())
        return Actions(
            distribution=DiagonalGaussian(shape, "exp" if is_free else "softplus"),
            space=box("float32", shape),
            size=count,
            fingerprint={"sigma": self.sigma},
            policy=policy,
            bounds=(low, high) if has_bounds else None,
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

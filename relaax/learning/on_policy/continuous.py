"""The keys that describe continuous actions of an actor-critic in the YAML file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log, prod
from typing import Any, Literal

from pydantic import Field, model_validator

from relaax.learning.action_settings import ActionSettings
from relaax.learning.action_units import ActionUnits
from relaax.learning.distributions import DiagonalGaussian, Distribution
from relaax.learning.networks import POLICY, Head
from relaax.learning.on_policy.policy_settings import RolloutSettings
from relaax.spaces import Space


@dataclass(frozen=True)
class Actions:
    """How actions are drawn, and how other parts describe them."""

    distribution: Distribution
    space: Space
    #: How many actions there are, or numbers in an action, as checkpoints have it.
    size: int | list[int]
    #: Further properties that a checkpoint must agree on, as JSON values.
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    #: The head of the distribution's parameters; None: all depends on the state.
    policy: Head | None = None
    #: Makes actions of the plant of those that are drawn; None for discrete ones.
    units: ActionUnits | None = None

    @property
    def head(self) -> Head:
        """The head, the default filled in."""
        return self.policy or Head(POLICY, self.distribution.outputs)


class ContinuousSettings(ActionSettings, RolloutSettings):
    """Actions that are arrays of numbers, each drawn from a normal distribution."""

    #: Whether the standard deviations depend on the state, as in the seed, or are parameters.
    sigma: Literal["state", "free"] = "state"
    #: The standard deviations of a training's first actions, with ``sigma: free``: in halves of the
    #: range between two bounds, else in ``action_scale``.
    initial_sigma: float = Field(1.0, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _uses_initial_sigma(self) -> "ContinuousSettings":
        if self.sigma == "state" and "initial_sigma" in self.model_fields_set:
            raise ValueError(
                "initial_sigma needs sigma: free; with sigma: state the first standard deviations "
                "are what the network puts out"
            )
        return self

    @property
    def actions(self) -> Actions:
        """The description of actions for the rest of the algorithm."""
        shape, count, is_free = self.action_shape, prod(self.action_shape), self.sigma == "free"
        policy = Head(POLICY, 2 * count)
        if is_free:
            policy = Head(POLICY, count, count, log(self.initial_sigma))
        return Actions(
            distribution=DiagonalGaussian(shape, "exp" if is_free else "softplus"),
            space=self.units.space,
            size=count,
            fingerprint={"sigma": self.sigma},
            policy=policy,
            units=self.units,
        )

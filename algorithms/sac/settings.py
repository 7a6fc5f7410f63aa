"""The keys of SAC's section in the YAML file."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator

from relaax.algorithm_base import Section
from relaax.learning.shapes import CountOrSizes, StateSize, action_shape_of
from relaax.observations import Shape

FloatArray = npt.NDArray[np.float32]

#: One number for all of an action, or one for each of its numbers.
Bound: TypeAlias = float | Sequence[float]


class Settings(Section):
    """The keys of the ``algorithm:`` section."""

    #: Shape of one state, or the shapes of several observations by name.
    state_size: StateSize
    #: How many numbers an action has, or the shape of an array of them.
    action_size: CountOrSizes
    #: Actions lie between these.
    action_low: Bound = -1.0
    action_high: Bound = 1.0
    #: Units of the dense layers of policy and critics.
    hidden_layers: tuple[PositiveInt, ...] = (256, 256)
    #: Environment steps of all agents together after which the training is over.
    max_global_step: float = Field(1e6, ge=1)
    #: Steps that are stored; the oldest make room for new ones.
    replay_size: PositiveInt = 1_000_000
    #: Steps that are stored before learning begins.
    learning_starts: PositiveInt = 100
    #: Transitions of one update.
    batch_size: PositiveInt = 256
    #: Updates for each environment step; None: as many as there is time for.
    updates_per_step: PositiveFloat | None = 1.0
    #: Discount factor.
    rewards_gamma: float = Field(0.99, gt=0, le=1)
    #: Steps that rewards are summed over before the value of what follows.
    n_step: PositiveInt = 1
    #: Part of the way that target critics follow the critics at each update.
    target_rate: float = Field(0.005, gt=0, le=1)
    policy_learning_rate: PositiveFloat = 3e-4
    critic_learning_rate: PositiveFloat = 3e-4
    temperature_learning_rate: PositiveFloat = 3e-4
    initial_temperature: PositiveFloat = 1.0
    #: The entropy that the temperature is moved for; None: minus one for each number of an action.
    target_entropy: float | None = None
    #: Learn from rewards multiplied by this; scores are reported as they are.
    reward_scale: PositiveFloat = 1.0
    #: Let TensorFlow see the GPU.
    gpu: bool = False
    #: Seed of initial parameters, of action sampling and of what is drawn; None draws one.
    seed: int | None = Field(None, ge=0)

    @field_validator("hidden_layers", "action_low", "action_high", mode="before")
    @classmethod
    def _sequence(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _bounds_fit(self) -> "Settings":
        low, high = self.bounds
        if not (low < high).all() or not np.isfinite([low, high]).all():
            raise ValueError("action_low must lie below action_high, both finite")
        return self

    @property
    def action_shape(self) -> Shape:
        """The shape of an action; () for a number."""
        return action_shape_of(self.action_size)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest actions, of their shape."""
        return (
            np.broadcast_to(np.array(self.action_low, np.float32), self.action_shape),
            np.broadcast_to(np.array(self.action_high, np.float32), self.action_shape),
        )

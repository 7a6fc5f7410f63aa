"""The keys that describe continuous actions in the YAML file, the same for all algorithms."""

from collections.abc import Sequence
from math import isnan
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import field_validator, model_validator

from relaax.algorithm_base import Section
from relaax.algorithm_base.config_base import require_effect
from relaax.learning.action_units import ActionUnits
from relaax.learning.shapes import CountOrSizes, action_shape_of
from relaax.observations import Shape

#: One number for all of an action, or nested sequences of the action's shape; None: not given.
Numbers: TypeAlias = float | Sequence[Any] | None


class ActionSettings(Section):
    """Actions that are arrays of numbers, and their units at the plant."""

    #: How many numbers an action has, or the shape of an array of them; ``[]`` for a number alone.
    action_size: CountOrSizes
    #: Bounds of actions. Between both, the policy's own actions are from -1 to 1; beyond one they
    #: are cut off on their way to the environment, after their likelihood has been computed.
    action_low: Numbers = None
    action_high: Numbers = None
    #: What 1 of the policy's own actions is to the environment, of numbers without both bounds.
    action_scale: Numbers = 1.0

    @field_validator("action_low", "action_high", "action_scale", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        return None if value is None else _numbers_in(value)

    @model_validator(mode="after")
    def _has_units(self) -> "ActionSettings":
        low, high, _ = self._of_shape()
        if (low >= high).any():
            raise ValueError("action_low must lie below action_high")
        try:
            units = self.units
        except ValueError as error:
            raise ValueError(f"action_low, action_high, action_scale: {error}") from error
        if units.is_bounded.all():
            require_effect(self, ("action_scale",), "a number that has no bound, or only one")
        return self

    @property
    def action_shape(self) -> Shape:
        """The shape of an action; () for a number."""
        return action_shape_of(self.action_size)

    @property
    def units(self) -> ActionUnits:
        """The conversion of the policy's actions to the plant's."""
        return ActionUnits(*self._of_shape())

    def _of_shape(self) -> tuple[npt.NDArray[Any], ...]:
        """Return bounds and scales of an action's shape; infinite where there is no bound."""
        missing = {"action_low": -np.inf, "action_high": np.inf, "action_scale": 1.0}
        return tuple(
            _spread(key, getattr(self, key), default, self.action_shape)
            for key, default in missing.items()
        )


def _numbers_in(value: Any) -> Any:
    """Return a number as a float, and lists as tuples of floats; ValueError for anything else."""
    if isinstance(value, list | tuple):
        return tuple(_numbers_in(each) for each in value)
    if isinstance(value, bool) or not isinstance(value, int | float) or isnan(value):
        raise ValueError(f"a number is expected, or lists of numbers, not {value}")
    return float(value)


def _spread(key: str, numbers: Numbers, missing: float, shape: Shape) -> npt.NDArray[Any]:
    """Return ``numbers`` as an array of ``shape``; ValueError if they have another shape."""
    if not isinstance(numbers, tuple):
        return np.full(shape, missing if numbers is None else numbers, np.float64)
    try:
        array = np.array(numbers, np.float64)
    except ValueError as error:
        raise ValueError(f"{key} has lists of different lengths") from error
    if array.shape != shape:
        raise ValueError(f"{key} has the shape {list(array.shape)}, and an action {list(shape)}")
    return array

"""The units of continuous actions: the policy's, and the units of the plant that it controls."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base.checkpoint import ACTION_UNITS
from relaax.spaces import NO_BOUND, Space, bounds_of, box

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]


class ActionUnits:
    """Converts actions between the units of a policy and the units of the plant.

    Networks, distributions, noise, entropies, critics and stored steps are in the policy's units,
    whatever the plant is: so the same is learnt of a valve between 0 and 100 and of one between
    0 and 1. Each number of an action has a unit of its own:

    - Between two bounds -1 is the lower one, and 1 the higher one.
    - Without both bounds one unit is ``scale``, and 0 is 0.

    The arrays have an action's shape; a number that is not finite is no bound. ValueError for a
    lower bound that is not below the higher one, for bounds between which float32 has no two
    numbers, and for a scale that is not a positive number.
    """

    def __init__(self, low: npt.ArrayLike, high: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> None:
        self._low, self._high = np.array(low, np.float64), np.array(high, np.float64)
        if self._low.shape != self._high.shape:
            raise ValueError(f"low has shape {self._low.shape}, high has {self._high.shape}")
        has_low, has_high = np.isfinite(self._low), np.isfinite(self._high)
        self._low[~has_low], self._high[~has_high] = -np.inf, np.inf
        scales = np.broadcast_to(np.array(scale, np.float64), self._low.shape)
        _check(self._low, self._high, scales)
        self.shape: tuple[int, ...] = self._low.shape
        self.is_bounded: BoolArray = has_low & has_high
        #: What -1 and 1 stand for.
        self._least = np.where(self.is_bounded, self._low, -scales)
        self._most = np.where(self.is_bounded, self._high, scales)
        #: float64, of ``middle + half * action``.
        self.half = (self._most - self._least) / 2
        self.middle = np.where(self.is_bounded, self._least + self.half, 0.0)
        #: The lowest and the highest actions of the plant that float32 has.
        self.lowest, self.highest = _within(self._low, self._high)

    @classmethod
    def of(cls, space: Space, scale: npt.ArrayLike = 1.0) -> "ActionUnits | None":
        """Return the units of actions of ``space``, a space as JSON; None for any but a Box.

        ``low`` and ``high`` of a Box are numbers or nested lists; None is no bound. ValueError for
        bounds of another shape.
        """
        if space.get("type") != "Box":
            return None
        return cls(*bounds_of(space), scale)

    @property
    def space(self) -> Space:
        """The space of the plant's actions; ``low`` and ``high`` where there are bounds."""
        space = box("float32", self.shape)
        for name, bound in (("low", self._low), ("high", self._high)):
            if np.isfinite(bound).any():
                space[name] = _as_json(bound)
        return space

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """The plant's actions at -1 and 1, as JSON values: a checkpoint must have the same.

        Nothing where a policy's units are the plant's.
        """
        if (self.half == 1).all() and (self.middle == 0).all():
            return {}
        return {ACTION_UNITS: [_as_json(self._least), _as_json(self._most)]}

    def to_plant(self, actions: Array) -> FloatArray:
        """Return the plant's actions float32 [B, ...] for a policy's ``actions`` [B, ...].

        Actions beyond a bound become the bound; rounding does not lead beyond it.
        """
        converted = (self.middle + self.half * actions).astype(np.float32)
        within: FloatArray = np.clip(converted, self.lowest, self.highest)
        return within

    def from_plant(self, actions: Array) -> FloatArray:
        """Return a policy's actions float32 [B, ...] for the plant's ``actions`` [B, ...]."""
        converted: FloatArray = ((actions - self.middle) / self.half).astype(np.float32)
        return converted


def _check(low: Array, high: Array, scales: Array) -> None:
    if not (low < high).all():
        raise ValueError(f"low must be below high, they are {low} and {high}")
    for name, bound in (("low", low), ("high", high)):
        if (np.isfinite(bound) & (np.abs(bound) >= NO_BOUND)).any():
            raise ValueError(
                f"{name} {bound} is no bound of a plant: leave it out, and give a scale instead"
            )
    if not (np.isfinite(scales) & (scales > 0)).all():
        raise ValueError(f"scale must be a positive number, is {scales}")


def _within(low: Array, high: Array) -> tuple[FloatArray, FloatArray]:
    """Return the least and the most of float32 that are not beyond the bounds."""
    lowest, highest = low.astype(np.float32), high.astype(np.float32)
    up, down = np.float32(np.inf), np.float32(-np.inf)
    lowest = np.where(lowest < low, np.nextafter(lowest, up), lowest)
    highest = np.where(highest > high, np.nextafter(highest, down), highest)
    if (lowest >= highest).any():
        raise ValueError(
            f"low {low} and high {high} are so near that float32, which actions are sent in, has "
            "no two numbers between them: count actions from another zero"
        )
    return lowest, highest


def _as_json(numbers: Array) -> Any:
    """Return one number where all are the same, else nested lists; None where one is infinite."""
    if np.unique(numbers).size == 1:
        return float(numbers.flat[0])
    written_out = numbers.astype(object)
    written_out[~np.isfinite(numbers)] = None
    return written_out.tolist()

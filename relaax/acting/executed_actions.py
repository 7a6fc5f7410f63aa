"""The actions that environments report to have executed: what fits, and what is another one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import InvalidState, Metrics, NullMetrics, Transitions
from relaax.learning.action_units import ActionUnits
from relaax.spaces import Space, leeway, limits_of, shape_of, written
from relaax.telemetry.interval_metrics import IntervalMetrics

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

#: The share of steps in which an environment executed another action; see docs/operations.md.
OTHERS = "actor/other actions executed"


class ExecutedActions:
    """Checks reports of executed actions, and compares them with those that were sent.

    ``space`` is that of the actions as they are sent, in the plant's ``units``; None for choices.
    """

    def __init__(
        self, space: Space, units: ActionUnits | None = None, metrics: Metrics | None = None
    ) -> None:
        self._space = space
        self._units = units
        self._shape = shape_of(space) or ()
        self._limits = limits_of(space)
        self._metrics = IntervalMetrics(metrics or NullMetrics())
        #: Whether any was reported: from then on their share is stored.
        self.has_reports = False

    def others(self, transitions: Transitions, chosen: Array) -> tuple[IntArray, Array]:
        """Return which slots executed another action, and these actions: [X] and [X, ...].

        chosen: [X, ...], those that were chosen for the slots that report an action. They, and what
        is returned, are in the policy's units.
        """
        slots, actions = transitions.executed, transitions.executed_actions
        if len(slots):
            self.has_reports = True
            sent = chosen if self._units is None else self._units.to_plant(chosen)
            differ = (actions != sent).reshape(len(slots), -1).any(axis=1)
            slots, actions = slots[differ], actions[differ]
            if self._units is not None:
                actions = self._units.from_plant(actions)
        steps = len(transitions.stepped)
        if steps:
            self._metrics.add(OTHERS, len(slots) / steps, steps)
            self._metrics.store_if_due()
        return slots, actions

    def check(self, actions: Sequence[Any] | Array) -> Array:
        """Return executed actions [X, ...] as an array of the type that is sent.

        InvalidState for what does not fit the space or lies beyond the bounds.
        """
        try:
            array = np.asarray(actions)
        except ValueError as error:
            raise self._refusal(f"is no array of numbers: {actions[0]!r:.60}") from error
        if array.shape[1:] != self._shape:
            raise self._refusal(f"has shape {list(array.shape[1:])}, not {list(self._shape)}")
        if self._limits is None:
            return self._checked_numbers(array)
        return self._checked_choices(array, self._limits)

    def close(self) -> None:
        """Store the metrics that are left."""
        self._metrics.store()

    def _checked_numbers(self, array: Array) -> Array:
        if array.dtype.kind not in "iuf":
            raise self._refusal(f"has dtype {array.dtype}, and must be of numbers")
        with np.errstate(over="ignore"):
            numbers: Array = array.astype(np.float32)
        self._require(np.isfinite(numbers), array, "is not finite as a 32-bit float")
        return numbers if self._units is None else self._within_bounds(numbers, array, self._units)

    def _within_bounds(self, numbers: Array, array: Array, units: ActionUnits) -> Array:
        """Return numbers within the bounds.

        What may be announced as the bound, with its last digits rounded, is the bound.
        """
        lowest, highest = (
            np.broadcast_to(bound, numbers.shape) for bound in (units.lowest, units.highest)
        )
        low, high = lowest.astype(np.float64), highest.astype(np.float64)
        up, down = np.float32(np.inf), np.float32(-np.inf)
        least = np.nextafter((low - leeway(low, low, high)).astype(np.float32), down)
        most = np.nextafter((high + leeway(high, low, high)).astype(np.float32), up)
        self._require(numbers >= least, array, "lies below action_low", lowest)
        self._require(numbers <= most, array, "lies above action_high", highest)
        return np.clip(numbers, lowest, highest)

    def _checked_choices(self, array: Array, limits: Array) -> Array:
        allowed = "biu" if self._space["type"] == "MultiBinary" else "iu"
        if array.dtype.kind not in allowed:
            raise self._refusal(f"has dtype {array.dtype}, and must be of integers")
        largest = np.broadcast_to(limits.astype(np.int64) - 1, array.shape)
        self._require(array >= 0, array, "lies below 0")
        self._require(array <= largest, array, "lies above the largest choice", largest)
        return array.astype(np.int64)

    def _require(
        self, is_right: BoolArray, array: Array, otherwise: str, limits: Array | None = None
    ) -> None:
        if is_right.all():
            return
        place = tuple(np.argwhere(~is_right)[0])
        limit = "" if limits is None else f", {limits[place]}"
        raise self._refusal(f"holds {array[place]}, which {otherwise}{limit}")

    def _refusal(self, what: str) -> InvalidState:
        space = written(self._space)
        return InvalidState(f"an executed action {what}; the server's action space is {space}")

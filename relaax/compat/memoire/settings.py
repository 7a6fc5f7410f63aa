"""The properties of a ``ReplayMemory`` that may be set at any time (seed 001, "Read write")."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from relaax.compat.memoire.returns import RATE, ReturnRule
from relaax.errors import ConfigurationError

Value = TypeVar("Value")


class Setting(Generic[Value]):
    """A property with a default, of which ``check`` returns what it is set to, or raises."""

    def __init__(self, default: Value, check: Callable[[str, Any], Value]) -> None:
        self._default = default
        self._check = check
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, settings: None, owner: type) -> "Setting[Value]": ...
    @overload
    def __get__(self, settings: "MemorySettings", owner: type) -> Value: ...
    def __get__(self, settings: "MemorySettings | None", owner: type) -> Any:
        if settings is None:
            return self
        return settings.chosen.get(self._name, self._default)

    def __set__(self, settings: "MemorySettings", value: Any) -> None:
        settings.change(self._name, self._check(self._name, value))


def number(least: float, most: float = np.inf) -> Callable[[str, Any], float]:
    """Return a check for finite numbers within bounds."""

    def checked(name: str, value: Any) -> float:
        if not (least <= float(value) <= most and np.isfinite(float(value))):
            raise ConfigurationError(f"{name} must be from {least:g} to {most:g}, is {value}")
        return float(value)

    return checked


def whole(least: int) -> Callable[[str, Any], int]:
    """Return a check for whole numbers of at least ``least``."""

    def checked(name: str, value: Any) -> int:
        if int(value) != value or value < least:
            raise ConfigurationError(
                f"{name} must be a whole number of at least {least}, is {value}"
            )
        return int(value)

    return checked


def truth(name: str, value: Any) -> bool:
    """Return whether ``value`` is true: a check that takes all values."""
    return bool(value)


class MemorySettings:
    """What may be set. Each property has an effect on what comes later.

    Those of rollouts (``rollout_len``, ``do_padding``, ``frame_stack``, ``multi_step``) have it on
    stored entries, too.
    """

    # So that a name that was mistyped, or that this memory does not have, is an AttributeError.
    __slots__ = ("_coeff", "_discount", "_max_step", "changed", "chosen")

    #: The exponent of errors; 0 draws all entries alike.
    priority_exponent = Setting(0.0, number(0))
    #: How much the return of the next step counts in that of a step, beside its value.
    mix_lambda = Setting(1.0, number(0, 1))
    #: The weight of an entry is multiplied by it whenever it is drawn; 0 draws each once.
    priority_decay = Setting(1.0, number(0, 1))
    #: News of later steps reach back until a return changes by less.
    traceback_threshold = Setting(1e-4, number(0))
    #: How fast the mean squared error, which errors are compared with, follows them.
    error_rate = Setting(RATE, number(0, 1))
    #: How many entries are drawn at once: those that end with the drawn one.
    rollout_len = Setting(1, whole(1))
    #: Let no rollout cross episodes: the first entry is repeated where there are too few.
    do_padding = Setting(False, truth)
    #: How many of the first field are stacked in each entry that is drawn; 1 adds no axis.
    frame_stack = Setting(1, whole(1))
    #: If above 0, draw pairs: a rollout, and the one that ends so many entries later.
    multi_step = Setting(0, whole(0))
    #: If above 0, clients keep their entries, and send so many drawn ones at once.
    cache_size = Setting(0, whole(0))
    #: Draw what clients have sent until something newer comes; else each of it once.
    reuse_cache = Setting(False, truth)
    #: How many episodes a slot keeps; 0 is as many as fit.
    max_episode = Setting(0, whole(0))

    def __init__(self, kinds: int, max_step: int) -> None:
        self.changed = threading.Condition()
        self.chosen: dict[str, Any] = {}
        self._max_step = max_step
        self._discount: npt.NDArray[np.float64] = np.ones(kinds)
        self._coeff: npt.NDArray[np.float64] = np.ones(kinds)

    @property
    def discount_factor(self) -> list[float]:
        """The discount factor of each kind of reward."""
        return [float(factor) for factor in self._discount]

    @discount_factor.setter
    def discount_factor(self, factors: Sequence[float] | float) -> None:
        self._discount = self._by_kind("discount_factor", factors)

    @property
    def reward_coeff(self) -> list[float]:
        """How much the error of each kind of reward counts."""
        return [float(coefficient) for coefficient in self._coeff]

    @reward_coeff.setter
    def reward_coeff(self, coefficients: Sequence[float] | float) -> None:
        self._coeff = self._by_kind("reward_coeff", coefficients)

    @property
    def scalars(self) -> dict[str, float]:
        """What was set, but for numbers by kind of reward."""
        return {name: float(value) for name, value in self.chosen.items()}

    @property
    def rule(self) -> ReturnRule:
        """How returns follow from rewards and values."""
        return ReturnRule(self._discount, self._coeff, self.mix_lambda)

    def change(self, name: str, value: Any) -> None:
        """Set a property, beside the other threads."""
        if name in ("rollout_len", "frame_stack") and value > self._max_step:
            raise ConfigurationError(
                f"{name} must be at most max_step, which is {self._max_step}, is {value}"
            )
        with self.changed:
            self.chosen[name] = value
            self.renew()
            self.changed.notify_all()

    def renew(self) -> None:
        """Find anew which entries may be drawn."""

    def _by_kind(self, name: str, values: Sequence[float] | float) -> npt.NDArray[np.float64]:
        given = np.array(values, np.float64, ndmin=1)
        if given.shape != self._discount.shape or not np.isfinite(given).all():
            raise ConfigurationError(
                f"{name} must be {len(self._discount)} finite numbers, one for each kind of "
                f"reward, is {values}"
            )
        return given

"""The properties of a ``ReplayMemory`` that may be set at any time (seed 001, "Read write")."""

import math
from typing import Any

import numpy as np

from relaax.compat.memoire.entry import MemoryInfo
from relaax.compat.memoire.returns import RATE, ReturnRule
from relaax.errors import ConfigurationError


class Setting:
    """A number from ``least`` to ``most``: whole, true or false, or neither, as ``default`` is."""

    def __init__(self, default: float, least: float = 0, most: float = math.inf) -> None:
        self._default, self._least, self._most = default, least, most

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, settings: "MemorySettings | None", owner: type) -> Any:
        return self if settings is None else settings.chosen.get(self._name, self._default)

    def __set__(self, settings: "MemorySettings", value: Any) -> None:
        number, kind = float(value), type(self._default)
        if not (self._least <= number <= self._most and math.isfinite(number)):
            raise ConfigurationError(
                f"{self._name} must be from {self._least:g} to {self._most:g}, is {value}"
            )
        if kind is int and number != int(number):
            raise ConfigurationError(f"{self._name} must be a whole number, is {value}")
        settings.change(self._name, kind(value))


class KindSetting(Setting):
    """A number for each kind of reward, 1 at first."""

    def __init__(self) -> None:
        super().__init__(1.0)

    def __get__(self, settings: "MemorySettings | None", owner: type) -> Any:
        if settings is None:
            return self
        return settings.chosen.get(self._name, [1.0] * settings.reward_buf.size)

    def __set__(self, settings: "MemorySettings", value: Any) -> None:
        given, kinds = np.array(value, np.float64, ndmin=1), settings.reward_buf.size
        if given.shape != (kinds,) or not np.isfinite(given).all():
            raise ConfigurationError(
                f"{self._name} must be {kinds} finite numbers, one for each kind of reward, is "
                f"{value}"
            )
        settings.change(self._name, given.tolist())


class MemorySettings(MemoryInfo):
    """The properties that may be set. Each has an effect on later entries and draws.

    The properties of rollouts (``rollout_len``, ``do_padding``, ``frame_stack``, ``multi_step``)
    act on stored entries, too.
    """

    __slots__ = ("chosen",)

    #: The exponent of errors; 0 draws all entries alike.
    priority_exponent = Setting(0.0)
    #: How much the return of the next step counts in a step's own, beside its value.
    mix_lambda = Setting(1.0, most=1)
    #: The discount factor of each kind of reward, and how much its error counts.
    discount_factor = KindSetting()
    reward_coeff = KindSetting()
    #: The weight of an entry is multiplied by it whenever it is drawn; 0 draws each once.
    priority_decay = Setting(1.0, most=1)
    #: News of later steps reach back until a return changes by less.
    traceback_threshold = Setting(1e-4)
    #: How fast the mean squared error, which errors are compared with, follows them.
    error_rate = Setting(RATE, most=1)
    #: How many entries are drawn at once; the drawn one is the last of them.
    rollout_len = Setting(1, least=1)
    #: Let no rollout cross episodes: the first entry is repeated where there are too few.
    do_padding = Setting(False, most=1)
    #: How many of the first field are stacked in each entry that is drawn; 1 adds no axis.
    frame_stack = Setting(1, least=1)
    #: If above 0, draw pairs: a rollout, and the one that ends so many entries later.
    multi_step = Setting(0)
    #: How many episodes a slot keeps; 0 is as many as fit.
    max_episode = Setting(0)

    def __init__(self, *info: Any) -> None:
        super().__init__(*info)
        self.chosen: dict[str, Any] = {}

    @property
    def rule(self) -> ReturnRule:
        """How returns follow from rewards and values."""
        factors, coefficients = np.array(self.discount_factor), np.array(self.reward_coeff)
        return ReturnRule(factors, coefficients, self.mix_lambda)

    def change(self, name: str, value: Any) -> None:
        """Set a property to a value that was checked."""
        self.chosen[name] = value

"""Conditions of the means of evaluated versions: when a stage of a curriculum is over."""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping

from relaax.configuration.curriculum import Condition, ConvergedArgs, SimpleBoundArgs
from relaax.errors import ConfigurationError


class Checked(ABC):
    """A condition that is asked about one evaluated version after another."""

    @abstractmethod
    def is_met(self, numbers: Mapping[str, float]) -> bool:
        """Return whether it holds of these means; ConfigurationError if they lack a field."""


class SimpleBound(Checked):
    """Holds of a mean above one limit and below another; a mean at a limit is outside."""

    def __init__(self, args: SimpleBoundArgs) -> None:
        self._field = args.field
        self._lower = -math.inf if args.lower_limit is None else args.lower_limit
        self._upper = math.inf if args.upper_limit is None else args.upper_limit

    def is_met(self, numbers: Mapping[str, float]) -> bool:
        """See Checked."""
        return self._lower < _of(numbers, self._field) < self._upper


class Converged(Checked):
    """Holds where the values of the last ``duration`` steps are no further apart than a threshold.

    1. Values before ``warmup_step`` are left out. The first one behind it begins.
    2. Nothing is said until the steps since the oldest value are ``duration`` or more.
    3. Of all values since then, the smallest and the largest are left out, (1 - confidence) / 2 of
       them at each end, rounded down; but the newest one counts. The others must lie within
       ``threshold``.
    4. Values that are ``duration`` or more steps old are forgotten.
    """

    def __init__(self, args: ConvergedArgs) -> None:
        self._args = args
        #: Steps and values.
        self._known: deque[tuple[float, float]] = deque()

    def is_met(self, numbers: Mapping[str, float]) -> bool:
        """See Checked."""
        args, known = self._args, self._known
        step, value = _of(numbers, args.step_field), _of(numbers, args.value_field)
        if step < args.warmup_step:
            return False
        known.append((step, value))
        if step - known[0][0] < args.duration:
            return False
        values = sorted(each for _, each in known)
        left_out = int(round(len(values) * (1 - args.confidence) / 2, 9))  # 0.1 * 20 / 2 is 1
        spread = max(values[-1 - left_out], value) - min(values[left_out], value)
        while step - known[0][0] >= args.duration:
            known.popleft()
        return spread <= args.threshold


def checked(condition: Condition) -> Checked:
    """Return a condition that has seen no version yet."""
    args = condition.typed_args
    return SimpleBound(args) if isinstance(args, SimpleBoundArgs) else Converged(args)


def _of(numbers: Mapping[str, float], field: str) -> float:
    if field not in numbers:
        raise ConfigurationError(
            f"a condition is about {field!r}, and the evaluated episodes have "
            f"{', '.join(sorted(numbers))}"
        )
    return numbers[field]

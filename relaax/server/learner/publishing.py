"""When a learner publishes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import ConfigurationError, LearningDiverged


def require_finite(parameters: npt.NDArray[Any], steps: int) -> None:
    """Raise LearningDiverged where ``parameters``, which are to be published, are not finite."""
    if not np.isfinite(parameters).all():
        raise _diverged("its parameters are not finite", steps)


def require_no_nan(state: Mapping[str, npt.NDArray[Any]], steps: int) -> None:
    """Raise LearningDiverged, which names the first array of ``state`` that has NaN in it.

    Infinities pass: a state may have them on purpose, as the best score before there is one.
    """
    for name, array in state.items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise _diverged(f"there is NaN in its {name}", steps)


def _diverged(what: str, steps: int) -> LearningDiverged:
    return LearningDiverged(
        f"after {steps:,} steps of the learner {what}: nothing of that is published or saved. "
        "Start the learner again, and it goes on from its last checkpoint; if that happens again, "
        "lower the learning rates"
    )


@dataclass(frozen=True)
class PublishRule:
    """At least so many seconds, or so many steps of the learner, between two publications.

    Surreal's ``parameter_publish.min_publish_interval`` (seed 000, "Learner"), or a count.
    """

    interval_s: float = 0.3
    every_steps: int | None = None

    def __post_init__(self) -> None:
        if self.interval_s < 0:
            raise ConfigurationError(f"must be at least 0 seconds, is {self.interval_s:g}")
        if self.every_steps is not None and self.every_steps < 1:
            raise ConfigurationError(f"must be at least 1 step, is {self.every_steps}")


class PublishClock:
    """Says when to publish."""

    def __init__(self, rule: PublishRule, clock: Callable[[], float] = time.monotonic) -> None:
        self._rule = rule
        self._clock = clock
        self._published_at = clock()
        self._published_step = 0

    def is_due(self, step: int) -> bool:
        """Return whether to publish after the learner's ``step``."""
        if self._rule.every_steps is not None:
            return step - self._published_step >= self._rule.every_steps
        return self._clock() - self._published_at >= self._rule.interval_s

    def note(self, step: int) -> None:
        """Take note that the parameters after ``step`` were published."""
        self._published_at, self._published_step = self._clock(), step

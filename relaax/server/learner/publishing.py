"""When a learner publishes."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import LearningDiverged


def require_finite(values: Mapping[str, npt.NDArray[Any]], steps: int) -> None:
    """Raise LearningDiverged where ``values``, which are to be published, are not finite."""
    for vector in values.values():
        if not np.isfinite(vector).all():
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


class PublishClock:
    """Says when to publish: ``interval_s`` after the last time, or after so many steps.

    Surreal's ``parameter_publish.min_publish_interval`` (seed 000, "Learner"), or a count.
    """

    def __init__(
        self,
        interval_s: float,
        every_steps: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._interval_s, self._every_steps = interval_s, every_steps
        self._clock = clock
        self._published_at = clock()
        self._published_step = 0

    def is_due(self, step: int) -> bool:
        """Return whether to publish after the learner's ``step``."""
        if self._every_steps is not None:
            return step - self._published_step >= self._every_steps
        return self._clock() - self._published_at >= self._interval_s

    def note(self, step: int) -> None:
        """Take note that the parameters after ``step`` were published."""
        self._published_at, self._published_step = self._clock(), step

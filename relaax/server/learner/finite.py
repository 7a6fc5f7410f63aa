"""What a learner has reached is worth something only while it is made of numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import LearningDiverged


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

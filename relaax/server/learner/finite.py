"""What a learner has reached is worth something only while it is finite."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import LearningDiverged


def require_finite(arrays: Mapping[str, npt.NDArray[Any]], steps: int) -> None:
    """Raise LearningDiverged, which names the first of ``arrays`` that is not finite."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise LearningDiverged(
                f"after {steps:,} steps of the learner its {name} are not finite: nothing of that "
                "is published or saved. Start the learner again, and it goes on from its last "
                "checkpoint; if that happens again, lower the learning rates"
            )

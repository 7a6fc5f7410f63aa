"""Which rewards can be sent, in both versions of the protocol.

Algorithms store rewards as 32-bit floats, so that a reward is finite as one.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

#: The largest 32-bit float.
MAX_REWARD = float(np.finfo(np.float32).max)

NOT_ALLOWED = "not finite as a 32-bit float"


def is_allowed(reward: float) -> bool:
    """Return whether one reward can be sent."""
    return abs(reward) <= MAX_REWARD


def are_allowed(rewards: npt.NDArray[Any]) -> bool:
    """Return whether all rewards [M], at least one, can be sent."""
    # The maximum is NaN where any reward is, and no comparison with NaN holds.
    return bool(np.maximum.reduce(np.abs(rewards)) <= MAX_REWARD)

"""Gymnasium's Pendulum in other units: ``scaled_pendulum:ScaledPendulum-v1``.

The task is the same: ``low`` and ``high`` stand for its torques of -2 and 2. Where it is ``far``,
states are a position far away, a length of a millionth, and a time in seconds since 1970.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import RescaleAction, TransformObservation

OFFSETS, UNITS = np.array([5.4e6, 0.0, 1.8e9]), np.array([0.3, 1e-6, 2.0])


def scaled_pendulum(
    low: float, high: float, far: bool = False, **options: Any
) -> gymnasium.Env[Any, Any]:
    """Return the environment whose actions lie between ``low`` and ``high``."""
    pendulum = gymnasium.make("Pendulum-v1", **options)
    if far:
        anything = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float64)
        pendulum = TransformObservation(pendulum, lambda seen: OFFSETS + UNITS * seen, anything)
    return RescaleAction(pendulum, np.float32(low), np.float32(high))


gymnasium.register("ScaledPendulum-v1", scaled_pendulum)

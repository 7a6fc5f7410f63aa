"""Gymnasium's Pendulum with a torque in other units: ``scaled_pendulum:ScaledPendulum-v1``.

The task is the same: ``low`` and ``high`` stand for its torques of -2 and 2.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import RescaleAction


def scaled_pendulum(low: float, high: float, **options: Any) -> gymnasium.Env[Any, Any]:
    """Return the environment whose actions lie between ``low`` and ``high``."""
    pendulum = gymnasium.make("Pendulum-v1", **options)
    return RescaleAction(pendulum, np.float32(low), np.float32(high))


gymnasium.register("ScaledPendulum-v1", scaled_pendulum)

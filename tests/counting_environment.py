"""An environment whose observations count: which environment, which episode, which step.

Gymnasium knows it as ``counting_environment:Counting-v0``. All three are exact as 32-bit floats.
"""

import secrets
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

#: Observations are these counts divided by so much.
SCALE = 2**20

#: Seconds of a step: it leaves the processor to what is tested.
STEP_S = 0.003

#: Every second episode is cut off after so many steps; the others end.
STEPS = 17


class Counting(gymnasium.Env):
    """Counts, and pays nothing."""

    observation_space = spaces.Box(0, 1, (3,), np.float32)
    action_space = spaces.Box(-2, 2, (1,), np.float32)

    def __init__(self) -> None:
        self._number = secrets.randbelow(SCALE)
        self._episode = -1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._episode += 1
        self._step = 0
        return self._observed(), {}

    def step(self, action: Any) -> Any:
        time.sleep(STEP_S)
        self._step += 1
        is_over, is_cut = self._step == STEPS, self._episode % 2 == 0
        return self._observed(), 0.0, is_over and not is_cut, is_over and is_cut, {}

    def _observed(self) -> np.ndarray:
        return np.array([self._number, self._episode, self._step], np.float32) / SCALE


gymnasium.register("Counting-v0", Counting)

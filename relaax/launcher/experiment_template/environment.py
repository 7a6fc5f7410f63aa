"""The environment: a point that is to reach a target. Replace ``Point`` by your own class.

The experiment makes it in actor workers, by the name of this file and of the class.
"""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

Observation = npt.NDArray[np.float32]

STEP = 0.1
MAX_STEPS = 50


class Point(gymnasium.Env[Observation, np.int64]):
    """A point and a target between -1 and 1: action 0 moves to the left, 2 to the right."""

    def __init__(self, width: float = 1.0) -> None:
        #: CHANGE: what the policy sees, and what it chooses; the experiment has both sizes.
        self.observation_space = Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = Discrete(3)
        self._width = width

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; return its first observation."""
        super().reset(seed=seed, options=options)
        self._point, self._target = self.np_random.uniform(-self._width, self._width, 2)
        self._steps = 0
        return self._observed(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Move; return observation, reward, whether it is over, and whether time is out."""
        self._point += (int(action) - 1) * STEP
        self._steps += 1
        is_reached = bool(abs(self._point - self._target) < STEP)
        reward = 1.0 if is_reached else -0.02
        return self._observed(), reward, is_reached, self._steps >= MAX_STEPS, {}

    def _observed(self) -> Observation:
        return np.array([self._point, self._target], np.float32)

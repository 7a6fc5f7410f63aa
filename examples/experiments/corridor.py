"""A corridor with a goal at its end: the longer it is, the later a random walk finds the goal."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

#: How far away the goal is, by the name of the stage.
DISTANCES = {"near": 2, "middle": 8, "far": 40}

#: An episode is cut off after so many steps for each step of the shortest way.
PATIENCE = 2

#: The place on the way, and the share that is left of it, are seen through so many numbers.
WAVES = 8

Observation = npt.NDArray[np.float32]


class Corridor(gymnasium.Env[Observation, int]):
    """Three actions: back, stay and forth; a reward of 1 at the goal, and 0 before.

    The stage comes with each reset. ``info["episode_info"]`` of the last step says whether the goal
    was reached.
    """

    observation_space = spaces.Box(-1, 1, (2 * WAVES,), np.float32)
    action_space = spaces.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode, in the stage of ``options``, or in the first one."""
        super().reset(seed=seed)
        self.distance = DISTANCES[(options or {}).get("stage", "near")]
        self.place = self.steps = 0
        return self._observation(), {}

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Go back, stay, or go forth."""
        self.place = max(self.place + int(action) - 1, 0)
        self.steps += 1
        has_won = self.place >= self.distance
        is_late = self.steps >= PATIENCE * self.distance
        info = {"episode_info": {"win_rate": has_won}} if has_won or is_late else {}
        return self._observation(), float(has_won), has_won, is_late and not has_won, info

    def _observation(self) -> Observation:
        angles = (self.place + 1) / max(DISTANCES.values()) * np.pi * np.arange(1, WAVES + 1)
        return np.concatenate([np.sin(angles), np.cos(angles)]).astype(np.float32)

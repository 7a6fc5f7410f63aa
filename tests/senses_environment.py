"""An environment that is learnt only with an image and a number, both inside of Dicts.

Gymnasium knows it as ``senses_environment:Senses-v0``.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

STEPS = 10

#: Of DA3C: what the environment observes, and what it allows.
KEYS = {
    "action_size": 3,
    "state_size": {"camera": [20, 20], "arm": {"speed": []}},
    "action_mask": "arm/legal",
}


class Senses(gymnasium.Env):
    """Action 1 is right if the bar is at the right or the arm is fast, and not if both are.

    Otherwise action 0 is. Both are allowed then, action 2 or not, and it is never right; what is
    forbidden ends the program.
    """

    action_space = spaces.Discrete(3)
    observation_space = spaces.Dict(
        camera=spaces.Box(0, 255, (20, 20), np.uint8),
        arm=spaces.Dict(speed=spaces.Box(-1, 1, (), np.float32), legal=spaces.MultiBinary(3)),
    )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._steps = 0
        return self._next_state(), {}

    def step(self, action: Any) -> Any:
        assert self._legal[action], f"{action} is forbidden by {self._legal}"
        self._steps += 1
        reward = float(action == self._right)
        return self._next_state(), reward, self._steps == STEPS, False, {}

    def _next_state(self) -> dict[str, Any]:
        is_right, is_fast, is_legal = self.np_random.integers(0, 2, 3).astype(bool)
        self._right = int(is_right != is_fast)
        self._legal = np.array([1, 1, is_legal], np.int8)
        return {
            "camera": picture(is_right),
            "arm": {"speed": np.array(1 if is_fast else -1, np.float32), "legal": self._legal},
        }


def picture(is_right: bool) -> np.ndarray:
    """A bright bar at the left or at the right: uint8 [20, 20]."""
    pixels = np.full((20, 20), 80, np.uint8)
    pixels[:, 12 if is_right else 4 :][:, :4] = 200
    return pixels


gymnasium.register("Senses-v0", Senses)

"""Environments whose actions are bits, or several choices, all of which depend on the state.

Gymnasium knows them as ``choices_environment:Bits-v0`` and ``Nested-v0``.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

STATES = np.eye(3, dtype=np.float32)
STEPS = 10


class Guessing(gymnasium.Env):
    """Pays the part of an action's numbers that is right for the state, ten times an episode."""

    observation_space = spaces.Box(0, 1, (len(STATES),), np.float32)

    def __init__(self, action_space: spaces.Space, right: list[Any]) -> None:
        self.action_space = action_space
        self._right = [_flat(action) for action in right]
        assert all(action in action_space for action in right)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._steps = 0
        return self._next_state(), {}

    def step(self, action: Any) -> Any:
        assert action in self.action_space, action
        self._steps += 1
        reward = float(np.mean(_flat(action) == self._right[self._state]))
        return self._next_state(), reward, self._steps == STEPS, False, {}

    def _next_state(self) -> np.ndarray:
        self._state = int(self.np_random.integers(len(STATES)))
        return STATES[self._state]


def _flat(action: Any) -> np.ndarray:
    """All numbers of an action, those of a dict in the order of its names."""
    if isinstance(action, dict):
        return np.concatenate([_flat(action[name]) for name in sorted(action)])
    return np.ravel(action)


BITS = spaces.MultiBinary([2, 2])
NESTED = spaces.Dict({"gear": spaces.Discrete(3, start=-1), "lights": spaces.MultiBinary(2)})

RIGHT = {
    "Bits": (
        BITS,
        [
            np.array(rows, np.int8)
            for rows in ([[0, 1], [1, 1]], [[1, 0], [0, 0]], [[1, 1], [0, 1]])
        ],
    ),
    "Nested": (
        NESTED,
        [
            {"gear": np.int64(gear), "lights": np.array([gear < 0, gear > 0], np.int8)}
            for gear in (-1, 0, 1)
        ],
    ),
}

for _name, (_space, _right) in RIGHT.items():
    gymnasium.register(f"{_name}-v0", Guessing, kwargs={"action_space": _space, "right": _right})

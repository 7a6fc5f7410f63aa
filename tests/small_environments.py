"""Environments that ask for a memory, for a critic that sees more, or for curiosity.

Gymnasium knows them as ``small_environments:TMaze-v0``, ``small_environments:HiddenReward-v0`` and
``small_environments:Corridor-v0``.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class TMaze(gymnasium.Env):
    """A cue in the first state says where to turn at the end of a corridor (Bakker 2001).

    The right way is worth 1, the other one -1. The cue is gone by then: without a memory the mean
    return is 0. A state is the cue (-1, 0 or 1) and whether the end is reached.
    """

    LENGTH = 6

    action_space = spaces.Discrete(2)
    observation_space = spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._place, self._way = 0, int(self.np_random.integers(2))
        return np.array([2 * self._way - 1, 0], np.float32), {}

    def step(self, action: Any) -> Any:
        is_over = self._place == self.LENGTH
        self._place += 1
        reward = (1.0 if action == self._way else -1.0) if is_over else 0.0
        return np.array([0, self._place == self.LENGTH], np.float32), reward, is_over, False, {}


class HiddenReward(gymnasium.Env):
    """An action is worth 1 if it is the one that ``seen`` says, and ``hidden`` on top of that.

    The hidden part is large, and is taken back with the next reward: it is noise for all that do
    not see it. An episode has ten steps.
    """

    STEPS, SIZE = 10, 10.0

    action_space = spaces.Discrete(2)
    observation_space = spaces.Dict(
        seen=spaces.Box(-1, 1, (1,), np.float32), hidden=spaces.Box(-100, 100, (1,), np.float32)
    )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._steps, self._hidden = 0, 0.0
        return self._next_state(), {}

    def step(self, action: Any) -> Any:
        reward = float(action == self._way) + self._hidden
        self._steps += 1
        return self._next_state(), reward, self._steps == self.STEPS, False, {}

    def _next_state(self) -> dict[str, Any]:
        self._way, is_first = int(self.np_random.integers(2)), self._steps % 2 == 0
        self._hidden = self.SIZE * float(self.np_random.normal()) if is_first else -self._hidden
        return {
            "seen": np.array([2 * self._way - 1], np.float32),
            "hidden": np.array([self._hidden], np.float32),
        }


class Corridor(gymnasium.Env):
    """The end of a corridor is worth 1, and nothing else is; a wall is behind the first place.

    A state has a 1 for its place. In the time that there is, a random walk gets to the end about
    once in a thousand episodes.
    """

    LENGTH = 24

    action_space = spaces.Discrete(2)
    observation_space = spaces.Box(0, 1, (LENGTH + 1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._place = self._steps = 0
        return self._state(), {}

    def step(self, action: Any) -> Any:
        self._steps += 1
        self._place = min(max(self._place + 2 * int(action) - 1, 0), self.LENGTH)
        is_there = self._place == self.LENGTH
        is_late = self._steps == 2 * self.LENGTH
        return self._state(), float(is_there), is_there, is_late and not is_there, {}

    def _state(self) -> Any:
        return np.eye(self.LENGTH + 1, dtype=np.float32)[self._place]


gymnasium.register("Corridor-v0", Corridor)
gymnasium.register("TMaze-v0", TMaze)
gymnasium.register("HiddenReward-v0", HiddenReward)

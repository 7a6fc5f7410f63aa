"""Agents that act at the same time, as in PettingZoo's parallel interface; without PettingZoo."""

import time
from typing import Any

import numpy as np
from gymnasium import spaces

#: Seconds of a step.
STEP_S = 0.005


class ManyAgents:
    """An agent sees its index, the step and the length of its episode, which differ.

    With ``has_roles`` the last one sees two numbers less, and has one action more.
    """

    def __init__(self, count: int = 7, longest: int = 60, has_roles: bool = False) -> None:
        self.possible_agents = [f"agent_{index}" for index in range(count)]
        self._longest = longest
        self._another = self.possible_agents[-1] if has_roles else None

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(0, 1000, (2 if agent == self._another else 4,), np.float32)

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(3 if agent == self._another else 2)

    def reset(self, seed: int | None = None) -> Any:
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self._step, self._length = 0, int(self._random.integers(self._longest // 2, self._longest))
        return self._seen(), {}

    def step(self, actions: dict[str, int]) -> Any:
        time.sleep(STEP_S)
        self._step += 1
        over = dict.fromkeys(actions, self._step >= self._length)
        rewards = {agent: float(action) for agent, action in actions.items()}
        return self._seen(), rewards, over, dict.fromkeys(actions, False), {}

    def _seen(self) -> dict[str, Any]:
        return {
            agent: np.float32([index, self._step, self._length, 0])[
                : 2 if agent == self._another else 4
            ]
            for index, agent in enumerate(self.possible_agents)
        }

    def close(self) -> None:
        pass

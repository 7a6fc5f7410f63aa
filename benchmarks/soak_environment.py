"""The environment of an actor of the soak, whose counts of steps lie in a file and outlive it."""

import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

sys.path.append(str(Path(__file__).parent))  # an actor loads this file alone
from soak_client import ANSWERED, EPISODE_STEPS, EPISODES, SENT, ClientCounts


class Counted(gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """Counts in the file ``path``: steps as sent when they end, as answered when acting goes on."""

    observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, path: str, steps_a_second: float) -> None:
        self._counts = ClientCounts(Path(path))
        self._pause_s = 1 / steps_a_second
        self._step = 0
        self._is_unanswered = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._note_answer()
        self._step = 0
        return self._state(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Go on after a while."""
        self._note_answer()
        time.sleep(self._pause_s)
        self._step += 1
        is_over = self._step == EPISODE_STEPS
        state = self._state()
        self._counts.add(SENT)
        self._is_unanswered = True
        if is_over:
            self._counts.add(EPISODES)
        return state, 1.0, is_over, False, {}

    def _note_answer(self) -> None:
        if self._is_unanswered:
            self._counts.add(ANSWERED)
            self._is_unanswered = False

    def _state(self) -> Any:
        return self.np_random.normal(size=4).astype(np.float32)

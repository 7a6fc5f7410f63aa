"""The two-step game of QMIX's paper, with PettingZoo's parallel interface; without PettingZoo.

environments/PettingZoo/main --rlx-server localhost:7001 --env two_step_game --team mean
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

#: What both agents earn in the second step, by the action of the first agent in the first one, and
#: then by the actions of both.
PAYOFFS = (((7, 7), (7, 7)), ((0, 1), (1, 8)))

AGENTS = ["first", "second"]

START = 0

Seen = dict[str, npt.NDArray[np.float32]]


class TwoStepGame:
    """Rashid et al. 2018 (https://arxiv.org/abs/1803.11485), section 5 and table 1.

    In the first step the first agent chooses the matrix that both are paid by in the second; the
    other agent's action has no effect, and nothing is earned. The first matrix always pays 7; the
    second one 8 where both take its second action, and less elsewhere. So 8 is the best return, and
    7 is earned by agents that do not rely on one another.

    Both see the whole state, a one-hot vector of 3: the first step, or which matrix. With
    ``shows_index`` a one-hot vector of the agent's own number is behind it.
    """

    def __init__(self, shows_index: bool = False) -> None:
        self.possible_agents = AGENTS
        self.state_space = spaces.Box(0, 1, (len(PAYOFFS) + 1,), np.float32)
        self._size = len(PAYOFFS) + 1 + len(AGENTS) * shows_index
        self._shows_index = shows_index
        self.agents: Sequence[str] = []

    def observation_space(self, agent: str) -> spaces.Box:
        """Return the space of what an agent sees."""
        return spaces.Box(0, 1, (self._size,), np.float32)

    def action_space(self, agent: str) -> spaces.Discrete:
        """Return two actions."""
        return spaces.Discrete(2)

    def state(self) -> npt.NDArray[np.float32]:
        """Return the state, float32 [3]."""
        state = np.zeros(len(PAYOFFS) + 1, np.float32)
        state[self._place] = 1
        return state

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        """Begin with the first step; nothing is drawn."""
        self._place, self.agents = START, AGENTS
        return self._seen(), {}

    def step(self, actions: Mapping[str, int]) -> tuple[Any, ...]:
        """Take the actions of both agents."""
        first, second = (int(actions[agent]) for agent in AGENTS)
        reward, is_over = 0.0, self._place != START
        if is_over:
            reward, self.agents = float(PAYOFFS[self._place - 1][first][second]), []
        else:
            self._place = 1 + first
        rewards, ends = dict.fromkeys(AGENTS, reward), dict.fromkeys(AGENTS, is_over)
        return self._seen(), rewards, ends, dict.fromkeys(AGENTS, False), {}

    def close(self) -> None:
        """Nothing is left open."""

    def _seen(self) -> Seen:
        state, indices = self.state(), np.eye(len(AGENTS), dtype=np.float32)
        return {
            agent: np.concatenate([state, index]) if self._shows_index else state.copy()
            for agent, index in zip(AGENTS, indices, strict=True)
        }


def parallel_env(**kwargs: Any) -> TwoStepGame:
    """Return the game."""
    return TwoStepGame(**kwargs)

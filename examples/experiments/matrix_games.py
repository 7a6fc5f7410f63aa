"""Games of two players that move once, at the same time, in PettingZoo's parallel interface."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv

#: The first player's payoffs, which the second one loses: a row for each of its moves.
PAYOFFS = {
    "rock_paper_scissors": [[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]],
    # Equilibrium: the rows with 2/5 and 3/5, the columns too; the value is 1/5.
    "two_by_two": [[2.0, -1.0], [-1.0, 1.0]],
}


class MatrixGame(ParallelEnv):  # type: ignore[misc]  # PettingZoo has no types here
    """One move of both players, of which neither sees anything.

    The last ``info`` has the number ``action``, the place of the player's move: a version that
    always moves alike has it as the mean in its metadata.
    """

    metadata = {"name": "matrix_game", "render_modes": []}  # noqa: RUF012  # as PettingZoo has it
    render_mode = None

    def __init__(self, game: str) -> None:
        self._payoffs = np.array(PAYOFFS[game])
        self.possible_agents = ["row", "column"]
        self.agents: list[str] = []
        self.observation_spaces = dict.fromkeys(
            self.possible_agents, Box(0.0, 1.0, (1,), np.float32)
        )
        counts = dict(zip(self.possible_agents, self._payoffs.shape, strict=True))
        self.action_spaces = {agent: Discrete(count) for agent, count in counts.items()}

    def observation_space(self, agent: str) -> Any:
        """Return the space of a player's observations: one number, always 1."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """Return the space of a player's moves."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        """Begin a game."""
        self.agents = list(self.possible_agents)
        return self._observations(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[Any, ...]:
        """Take both moves: the game is over."""
        earned = float(self._payoffs[actions["row"], actions["column"]])
        rewards = {"row": earned, "column": -earned}
        infos = {
            agent: {"episode_info": {"action": float(actions[agent])}} for agent in self.agents
        }
        self.agents = []
        ended, going_on = (dict.fromkeys(self.possible_agents, end) for end in (True, False))
        return self._observations(), rewards, ended, going_on, infos

    def _observations(self) -> dict[str, Any]:
        return {agent: np.ones(1, np.float32) for agent in self.possible_agents}

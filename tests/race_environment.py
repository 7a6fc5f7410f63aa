"""Two racers, in turns or at the same time, as PettingZoo's interfaces have it; without PettingZoo.

Each moves by 0 or 1. Who passes ``length`` first is done, with a reward of 1, and leaves; the other
goes on. With ``most_moves`` a race is cut off. Move 1 is forbidden on an odd field, where the
other action alone leads on: whoever disregards the mask raises.
"""

from typing import Any

import numpy as np
from gymnasium import spaces

RACERS = ["left", "right"]


class Race:
    """The state of both interfaces."""

    possible_agents = RACERS

    def __init__(self, length: int = 2, most_moves: int = 100) -> None:
        self.length, self.most_moves = length, most_moves

    def observation_space(self, agent: str) -> Any:
        place = spaces.Box(0, 100, (1,), np.float32)
        return spaces.Dict(observation=place, action_mask=spaces.Box(0, 1, (2,), np.int8))

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2)

    def begin(self) -> None:
        self.agents = list(RACERS)
        self.places = dict.fromkeys(RACERS, 0)
        self.moves = dict.fromkeys(RACERS, 0)
        self.terminations = dict.fromkeys(RACERS, False)
        self.truncations = dict.fromkeys(RACERS, False)

    def move(self, agent: str, action: int) -> float:
        """Move, and return what it earns."""
        assert self.seen(agent, True)["action_mask"][action], "a forbidden move"
        self.places[agent] += 1
        self.moves[agent] += 1
        self.terminations[agent] = self.places[agent] >= self.length
        self.truncations[agent] = self.moves[agent] >= self.most_moves
        return float(self.terminations[agent])

    def seen(self, agent: str, has_turn: bool) -> dict[str, Any]:
        mask = np.array([1, self.places[agent] % 2 == 0], np.int8) * has_turn
        return {"observation": np.float32([self.places[agent]]), "action_mask": mask}

    def is_over(self, agent: str) -> bool:
        return self.terminations[agent] or self.truncations[agent]

    def close(self) -> None:
        self.agents = []


class TurnRace(Race):
    """In turns: each racer also loses 0.25 when the other moves."""

    def reset(self, seed: int | None = None) -> None:
        self.begin()
        self.earned = dict.fromkeys(RACERS, 0.0)
        self.agent_selection = RACERS[0]

    def last(self) -> Any:
        agent = self.agent_selection
        seen = self.seen(agent, not self.is_over(agent))
        return seen, self.earned[agent], self.terminations[agent], self.truncations[agent], {}

    def step(self, action: int | None) -> None:
        agent = self.agent_selection
        if self.is_over(agent):
            assert action is None
            self.agents.remove(agent)
        else:
            self.earned[agent] = 0.0
            reward = self.move(agent, int(action))
            for each in self.agents:
                self.earned[each] += reward if each == agent else -0.25
        others = [each for each in self.agents if each != agent]
        self.agent_selection = (others or [agent])[0]


class ParallelRace(Race):
    """At the same time."""

    def reset(self, seed: int | None = None) -> Any:
        self.begin()
        return {agent: self.seen(agent, True) for agent in self.agents}, {}

    def step(self, actions: dict[str, int]) -> Any:
        rewards = {agent: self.move(agent, int(action)) for agent, action in actions.items()}
        observations = {agent: self.seen(agent, not self.is_over(agent)) for agent in actions}
        ends = self.terminations, self.truncations
        terminated, truncated = ({agent: end[agent] for agent in actions} for end in ends)
        self.agents = [agent for agent in self.agents if not self.is_over(agent)]
        return observations, rewards, terminated, truncated, {}


env, parallel_env = TurnRace, ParallelRace

"""The agent of one environment."""

from typing import Any

import numpy as np

from relaax.algorithm_base import AgentBase, BridgeBase, Steps
from relaax.steps import START, TERMINATED

from ..config import Config
from ..preprocessor import Preprocessor
from .batch_agent import BatchAgent


class Agent(AgentBase):
    """A batch of one: the seed's interface to ``BatchAgent``."""

    def __init__(self, config: Config, parameter_server: BridgeBase) -> None:
        super().__init__(config, parameter_server)
        self._preprocessor = Preprocessor(config, environments=1)
        self._batch_agent = BatchAgent(config, parameter_server, learns_in_background=False)
        self._slots = self._batch_agent.open(1)
        self._score = 0.0

    def act(self, state: Any) -> int:
        """Start an episode; one that was going on was cut off in its last state."""
        self._score = 0.0
        return self._step(START, 0.0, [state])

    def reward_and_act(self, reward: float, state: Any) -> int:
        """Complete the step before, learn when the rollout is full, and choose an action."""
        self._score += reward
        return self._step(0, reward, [state])

    def reward_and_reset(self, reward: float) -> float:
        """Complete the last step of an episode and return the episode's uncut rewards' sum."""
        self._score += reward
        self._step(TERMINATED, reward, [])
        return self._score

    def close(self) -> None:
        """End the agent."""
        self._batch_agent.close()

    def _step(self, flags: int, reward: float, states: list[Any]) -> Any:
        observations: Any = states
        if states:
            observations = self._preprocessor.observe(
                np.zeros(1, np.int64), np.array([flags == START]), states
            )
        steps = Steps(
            self._slots, np.array([flags], np.uint8), np.array([reward]), observations, finals=[]
        )
        actions = self._batch_agent.act(steps)
        return int(actions[0]) if states else None

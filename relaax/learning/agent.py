"""The agent of one environment."""

from typing import Any

import numpy as np

from relaax.algorithm_base import AgentBase, BridgeBase, InvalidState
from relaax.steps import START, TERMINATED
from relaax.transitions import read_transitions

from ..config import Config
from .batch_agent import BatchAgent

_SLOT = np.zeros(1, np.int64)


class Agent(AgentBase):
    """A batch of one: the seed's interface to ``BatchAgent``."""

    def __init__(self, config: Config, parameter_server: BridgeBase, seed: int = 0) -> None:
        super().__init__(config, parameter_server)
        self._batch_agent = BatchAgent(config, parameter_server, seed, learns_in_background=False)
        self._batch_agent.open(_SLOT)
        self._is_running = np.zeros(1, np.bool_)
        self._dtype: np.dtype[Any] | None = None
        self._score = 0.0

    def act(self, state: Any) -> int:
        """Start an episode; one that was going on was cut off in its last state."""
        self._score = 0.0
        action = self._step(START, 0.0, [state])
        self._is_running[:] = True
        return int(action[0])

    def reward_and_act(self, reward: float, state: Any) -> int:
        """Complete the step before, learn when the rollout is full, and choose an action."""
        self._score += reward
        return int(self._step(0, reward, [state])[0])

    def reward_and_reset(self, reward: float) -> float:
        """Complete the last step of an episode and return the episode's uncut rewards' sum."""
        self._score += reward
        self._step(TERMINATED, reward, [])
        self._is_running[:] = False
        return self._score

    def close(self) -> None:
        """End the agent."""
        self._batch_agent.close()

    def _step(self, flags: int, reward: float, states: list[Any]) -> Any:
        observations = self._checked(states) if states else np.zeros(0)
        transitions = read_transitions(
            _SLOT, np.array([flags], np.uint8), np.array([reward]), self._is_running
        )
        return self._batch_agent.act(transitions, observations, np.zeros(0))

    def _checked(self, states: list[Any]) -> Any:
        checked = self._batch_agent.check(states)
        if self._dtype is not None and checked.dtype != self._dtype:
            raise InvalidState(f"a state of {checked.dtype} came after states of {self._dtype}")
        self._dtype = checked.dtype
        return checked

"""Plays each episode with weights of its own."""

from typing import Any

import numpy as np

from relaax.algorithm_base import AgentBase, BridgeBase, InvalidState

from .config import Config


class Agent(AgentBase):
    """Takes the action with the largest score, linear in the state."""

    def __init__(self, config: Config, parameter_server: BridgeBase, seed: int) -> None:
        super().__init__(config, parameter_server)
        self._random = np.random.default_rng(seed)
        self._values = parameter_server.get_values()

    def act(self, state: Any) -> int:
        """Start an episode with the best known weights, moved a little."""
        if self._values.vector is None:
            raise RuntimeError("the first values came without their vector")
        noise = self.config.noise * self._random.normal(size=self.config.weights)
        self._weights = (self._values.vector[1:] + noise).astype(np.float32)
        self._score, self._steps = 0.0, 0
        return self._choose(state)

    def reward_and_act(self, reward: float, state: Any) -> int:
        """Go on."""
        self._score += reward
        self._steps += 1
        if self._steps == 499:  # the episode is about to be cut off: that is a score, too
            self._report()
        return self._choose(state)

    def reward_and_reset(self, reward: float) -> float:
        """Report how good these weights were."""
        self._score += reward
        self._steps += 1
        self._report()
        return self._score

    def _report(self) -> None:
        result = np.concatenate([[self._score], self._weights]).astype(np.float32)
        newer = self.parameter_server.synchronize(result, self._steps, self._values.version)
        if newer.vector is not None:
            self._values = newer

    def _choose(self, state: Any) -> int:
        observation = np.asarray(state, np.float32)
        if observation.shape != (self.config.state_size,):
            raise InvalidState(f"a state has shape {observation.shape}")
        scores = self._weights.reshape(self.config.action_size, -1) @ observation
        return int(np.argmax(scores))

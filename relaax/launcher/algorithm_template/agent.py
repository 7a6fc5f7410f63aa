"""What acts in one environment."""

from typing import Any

import numpy as np

from relaax.algorithm_base import AgentBase, BridgeBase, InvalidState

from .config import Config


class Agent(AgentBase):
    """Plays each episode with weights of its own, and takes the action with the largest score."""

    config: Config

    def __init__(self, config: Config, parameter_server: BridgeBase, seed: int) -> None:
        super().__init__(config, parameter_server)
        self._random = np.random.default_rng(seed)
        self._best = parameter_server.get_values()

    def act(self, state: Any) -> int:
        """Start an episode with the best weights, moved a little."""
        if self._best.vector is None:
            raise RuntimeError("the first values came without their vector")
        best = self._best.vector[1:].reshape(self.config.weights_shape)
        self._weights = best + self.config.keys.noise * self._random.normal(size=best.shape)
        self._score, self._steps = 0.0, 0
        return self._choose(state)

    def reward_and_act(self, reward: float, state: Any) -> int:
        """Go on."""
        self._count(reward)
        return self._choose(state)

    def reward_and_reset(self, reward: float) -> None:
        """Report the score of an episode that is over."""
        self._count(reward)
        self._report()

    def reward_and_truncate(self, reward: float, state: Any) -> None:
        """Report the score of an episode that was cut off: here, that is a score like others."""
        self._count(reward)
        self._report()

    def _count(self, reward: float) -> None:
        self._score += reward
        self._steps += 1

    def _report(self) -> None:
        result = np.concatenate([[self._score], self._weights.ravel()]).astype(np.float32)
        values = self.parameter_server.synchronize(result, self._steps, self._best.version)
        if values.vector is not None:  # None: the weights that are here are still the best
            self._best = values
        self.metrics().scalar("agent/size of weights", float(np.abs(self._weights).mean()))

    def _choose(self, state: Any) -> int:
        observation = np.asarray(state, np.float32)
        if observation.shape != self._weights.shape[1:]:
            raise InvalidState(f"a state has shape {list(observation.shape)}")
        return int(np.argmax(self._weights @ observation))

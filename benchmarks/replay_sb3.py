"""Stable-Baselines3's replay buffer, as it is measured."""

from collections.abc import Callable
from typing import Any

import gymnasium
import no_tensorboard  # noqa: F401 - before Stable-Baselines3
import numpy as np
from replay_load import ENVIRONMENTS
from replay_shapes import Shape
from stable_baselines3.common.buffers import ReplayBuffer

#: It stores whole stacks.
CAPACITIES = {"small": 1_000_000, "images": 8_000}


class BaselinesBuffer:
    """Stable-Baselines3's ReplayBuffer of a shape, full."""

    def __init__(self, shape: Shape, capacity: int) -> None:
        columns = shape.schema.columns
        observation, action = columns["observation"], columns["action"]
        size = (ENVIRONMENTS, shape.view.stack, *observation.shape)
        random = np.random.default_rng(6)
        self._observations = (10 * random.standard_normal(size)).astype(observation.dtype)
        if shape.view.stack == 1:
            self._observations = self._observations[:, 0]
        self._actions = np.zeros((ENVIRONMENTS, *(action.shape or (1,))), action.dtype)
        self._buffer = ReplayBuffer(
            capacity,
            gymnasium.spaces.Box(0, 255, self._observations.shape[1:], observation.dtype.type),
            _action_space(action),
            device="cpu",
            n_envs=ENVIRONMENTS,
            optimize_memory_usage=True,
            handle_timeout_termination=False,
        )
        for _ in range(capacity // ENVIRONMENTS + 1):
            self.store()

    def store(self) -> int:
        """Add a step of each environment; return how many these are."""
        self._buffer.add(
            self._observations,
            self._observations,
            self._actions,
            np.zeros(ENVIRONMENTS),
            np.zeros(ENVIRONMENTS),
            [{}] * ENVIRONMENTS,
        )
        return ENVIRONMENTS

    def drawing(self, batch: int) -> Callable[[], int]:
        """Return a call that draws a batch, as tensors of PyTorch."""
        return lambda: len(self._buffer.sample(batch).rewards)


def _action_space(column: Any) -> gymnasium.Space[Any]:
    if column.shape:
        return gymnasium.spaces.Box(-1, 1, column.shape, column.dtype.type)
    return gymnasium.spaces.Discrete(18)

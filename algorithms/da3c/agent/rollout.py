"""Collects the steps of one update."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import RolloutBatch
from ..returns import n_step_returns

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Step:
    """An action that was chosen and waits for its reward."""

    #: [...]
    observation: npt.NDArray[Any]
    action: int
    #: The network's value of the observation.
    value: float
    starts_episode: bool
    #: float32 [2, 1, H], before the step.
    recurrent_state: FloatArray


class Rollout:
    """Up to ``length`` complete steps; episodes may end, and others begin, inside."""

    def __init__(self, length: int, discount: float) -> None:
        self._length = length
        self._discount = discount
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self._steps: list[Step] = []
        self._rewards = np.zeros(self._length, np.float32)
        self._terminated = np.zeros(self._length, np.bool_)
        self._truncated = np.zeros(self._length, np.bool_)
        self._cut_values = np.zeros(self._length, np.float32)

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def is_full(self) -> bool:
        """Whether it is time to learn."""
        return len(self._steps) == self._length

    def add(self, step: Step, reward: float, terminated: bool) -> None:
        """Add a step that has got its reward."""
        index = len(self._steps)
        self._steps.append(step)
        self._rewards[index] = reward
        self._terminated[index] = terminated

    def cut_off(self, value: float) -> None:
        """Note that the episode was truncated after the last step, in a state of this value."""
        if self._steps:
            self._truncated[len(self._steps) - 1] = True
            self._cut_values[len(self._steps) - 1] = value

    def batch(self, bootstrap_value: float) -> RolloutBatch:
        """Return the steps with their returns; the state that follows has ``bootstrap_value``."""
        count, steps = len(self._steps), self._steps
        return RolloutBatch(
            observations=np.stack([step.observation for step in steps]),
            actions=np.array([step.action for step in steps], np.int32),
            returns=n_step_returns(
                self._rewards[:count],
                self._terminated[:count],
                self._truncated[:count],
                self._cut_values[:count],
                bootstrap_value,
                self._discount,
            ),
            continues=np.array([not step.starts_episode for step in steps], np.float32),
            recurrent_state=steps[0].recurrent_state,
        )

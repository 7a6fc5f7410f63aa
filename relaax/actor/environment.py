"""An environment as an actor sees it: states and actions are those of algorithms."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np

from relaax.client.gymnasium_actions import action_decoder
from relaax.client.gymnasium_factory import Environment
from relaax.client.gymnasium_observations import state_encoder


class Outcome(NamedTuple):
    """What an action led to."""

    #: An array, or arrays by name.
    state: Any
    reward: float
    #: Nothing can be earned any more.
    terminated: bool
    #: The episode was cut off here, and could have gone on.
    truncated: bool
    info: dict[str, Any]

    @property
    def is_over(self) -> bool:
        """Whether the episode has ended, in one way or the other."""
        return self.terminated or self.truncated


class ActorEnvironment:
    """Encodes the observations of a Gymnasium environment, and decodes actions, as clients do."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._encode = state_encoder(environment.observation_space)
        self._decode = action_decoder(environment.action_space)

    def reset(self, seed: int | None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; return its first state and what else is known of it."""
        observation, info = self.environment.reset(seed=seed)
        return self._encode(observation), info

    def step(self, action: Any) -> Outcome:
        """Take an action; ``UnusableAction`` for one that does not fit."""
        number = action.item() if isinstance(action, np.generic) else action
        observation, reward, terminated, truncated, info = self.environment.step(
            self._decode(number)
        )
        return Outcome(
            state=self._encode(observation),
            reward=float(reward),
            terminated=bool(terminated),
            truncated=bool(truncated) and not terminated,
            info=info,
        )


def limited(environment: Environment, steps: int | None) -> Environment:
    """Return ``environment`` with its episodes cut off, not terminated, after so many ``steps``."""
    if steps is None:
        return environment
    return gymnasium.wrappers.TimeLimit(environment, steps)

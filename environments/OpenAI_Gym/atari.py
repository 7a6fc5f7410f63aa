"""Atari games with the usual preprocessing, one or several that step together.

``relaax.client.gymnasium_atari`` says which it is.
"""

from dataclasses import dataclass
from typing import Any

import gymnasium

from relaax.client.gymnasium_atari import (
    FRAME_SIZE,
    FRAME_SKIP,
    MAX_IDLE_ACTIONS,
    atari_game,
    prepare_libraries,
)
from relaax.processes.cgroups import usable_cores

#: The probability that a game repeats its last action, in version 5 of all games.
STICKY_IN_V5 = 0.25

_PREFIX = "ALE/"


def is_atari(env_id: str) -> bool:
    """Return whether ``env_id`` is one of ale-py's games."""
    return env_id.startswith(_PREFIX)


@dataclass(frozen=True)
class AtariFactory:
    """Makes one game, or several that step together.

    ``sticky`` is the probability that a game repeats its last action; None keeps the game's own.
    ``kwargs`` are more arguments of ``gymnasium.make``.
    """

    env_id: str
    sticky: float | None
    kwargs: dict[str, Any]

    def __call__(self) -> gymnasium.Env[Any, Any]:
        """Return a new environment with frames ``uint8[84, 84]``."""
        kwargs = dict(self.kwargs)
        if self.sticky is not None:
            kwargs["repeat_action_probability"] = self.sticky
        return atari_game(self.env_id, **kwargs)

    def vector(self, count: int) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
        """Return ``count`` games that step together; ale-py emulates and preprocesses in C++."""
        prepare_libraries()
        settings = {
            "repeat_action_probability": STICKY_IN_V5 if self.sticky is None else self.sticky,
            "full_action_space": False,
            **self.kwargs,
        }
        games = gymnasium.make_vec(
            self.env_id,
            num_envs=count,
            stack_num=1,
            img_height=FRAME_SIZE,
            img_width=FRAME_SIZE,
            frameskip=FRAME_SKIP,
            noop_max=MAX_IDLE_ACTIONS,
            reward_clipping=False,
            use_fire_reset=False,
            num_threads=min(count, usable_cores()),
            **settings,
        )
        return _WithoutStack(games)


class _WithoutStack(gymnasium.vector.VectorObservationWrapper):
    """Removes the axis along which ale-py stacks frames: [N, 1, 84, 84] becomes [N, 84, 84]."""

    def __init__(self, games: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(games)
        single = games.single_observation_space
        self.single_observation_space = gymnasium.spaces.Box(
            single.low[0], single.high[0], dtype=single.dtype
        )

    def observations(self, observations: Any) -> Any:
        """Return the only frame of each stack."""
        return observations[:, 0]

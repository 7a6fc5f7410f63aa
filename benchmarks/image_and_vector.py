"""An environment for Gymnasium that is learnt only with an image and a vector together.

    environments/OpenAI_Gym/main --env image_and_vector:ImageAndVector-v0 ...

A player, a bright square on a dark board, moves up, down, left and right. There is a light target
and a dim one. ``wanted`` says which of them pays 1 and which costs 1; both end the episode. The
image says where they are, and not which one is wanted. Steps towards it earn a little, too.
"""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

#: Squares on each side of the board, and pixels on each side of a square.
BOARD, SQUARE = 4, 9

#: How bright they are: the player, and both targets.
PLAYER, TARGETS = 255, (170, 85)

MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])

#: What a step towards the target that is wanted earns, and a step away from it costs.
STEP_REWARD = 0.1

Array = npt.NDArray[Any]


class ImageAndVector(gymnasium.Env[dict[str, Array], int]):
    """Find the target that is wanted. Observations: ``board`` uint8 [36, 36, 1], ``wanted`` [2]."""

    def __init__(self) -> None:
        side = BOARD * SQUARE
        self.observation_space = gymnasium.spaces.Dict(
            board=gymnasium.spaces.Box(0, 255, (side, side, 1), np.uint8),
            wanted=gymnasium.spaces.Box(0, 1, (2,), np.float32),
        )
        self.action_space = gymnasium.spaces.Discrete(len(MOVES))
        self._player = np.zeros(2, np.int64)
        self._targets = np.zeros((2, 2), np.int64)
        self._wanted = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Put the player and both targets on three squares."""
        super().reset(seed=seed)
        places = self.np_random.choice(BOARD**2, 3, replace=False)
        self._player, *targets = np.stack(np.divmod(places, BOARD), axis=1)
        self._targets = np.stack(targets)
        self._wanted = int(self.np_random.integers(2))
        return self._observation(), {}

    def step(self, action: int) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Move; the board's edge stops the player."""
        distance = self._distance()
        self._player = np.clip(self._player + MOVES[action], 0, BOARD - 1)
        found = (self._targets == self._player).all(axis=1)
        reward = float(found[self._wanted]) - float(found[1 - self._wanted])
        reward += STEP_REWARD * (distance - self._distance())
        return self._observation(), reward, bool(found.any()), False, {}

    def _distance(self) -> int:
        """Return how many steps it is to the target that is wanted."""
        return int(np.abs(self._targets[self._wanted] - self._player).sum())

    def _observation(self) -> dict[str, Array]:
        board = np.zeros((BOARD, BOARD), np.uint8)
        board[tuple(self._targets.T)] = TARGETS
        board[tuple(self._player)] = PLAYER
        pixels = board.repeat(SQUARE, axis=0).repeat(SQUARE, axis=1)
        return {
            "board": pixels[..., np.newaxis],
            "wanted": np.eye(2, dtype=np.float32)[self._wanted],
        }


gymnasium.register("ImageAndVector-v0", ImageAndVector, max_episode_steps=50)

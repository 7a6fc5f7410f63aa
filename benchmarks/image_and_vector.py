"""An environment for Gymnasium that is learnt only with an image and a vector together.

    environments/OpenAI_Gym/main --env image_and_vector:ImageAndVector-v0 ...

A hand moves over a board, up, down, left and right, to a bright square. The image shows the square,
and the vector says where the hand is; neither is in the other.
"""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

#: Squares on each side of the board, and pixels on each side of a square.
BOARD, SQUARE = 6, 6

MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])

#: What each move costs, so that short ways are better.
COST = 0.05

Array = npt.NDArray[Any]


class ImageAndVector(gymnasium.Env[dict[str, Array], int]):
    """Find the square. Observations: ``camera`` uint8 [36, 36, 1], ``hand`` float32 [2] in ±1."""

    def __init__(self) -> None:
        side = BOARD * SQUARE
        self.observation_space = gymnasium.spaces.Dict(
            camera=gymnasium.spaces.Box(0, 255, (side, side, 1), np.uint8),
            hand=gymnasium.spaces.Box(-1, 1, (2,), np.float32),
        )
        self.action_space = gymnasium.spaces.Discrete(len(MOVES))
        self._hand = np.zeros(2, np.int64)
        self._target = np.zeros(2, np.int64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Put the hand and the target on two squares."""
        super().reset(seed=seed)
        places = self.np_random.choice(BOARD**2, 2, replace=False)
        self._hand, self._target = np.stack(np.divmod(places, BOARD), axis=1)
        return self._observation(), {}

    def step(self, action: int) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Move; the board's edge stops the hand. The target earns 1 and ends the episode."""
        self._hand = np.clip(self._hand + MOVES[action], 0, BOARD - 1)
        is_found = bool((self._hand == self._target).all())
        return self._observation(), float(is_found) - COST, is_found, False, {}

    def _observation(self) -> dict[str, Array]:
        board = np.zeros((BOARD, BOARD), np.uint8)
        board[tuple(self._target)] = 255
        pixels = board.repeat(SQUARE, axis=0).repeat(SQUARE, axis=1)
        hand = (2 * self._hand / (BOARD - 1) - 1).astype(np.float32)
        return {"camera": pixels[..., np.newaxis], "hand": hand}


gymnasium.register("ImageAndVector-v0", ImageAndVector, max_episode_steps=50)

"""An Atari game, as the Arcade Learning Environment emulates it.

Bellemare et al., "The Arcade Learning Environment", 2013; Machado et al., "Revisiting the Arcade
Learning Environment", 2018; Mnih et al., "Human-level control through deep reinforcement learning",
2015: an action lasts four frames, and a state is the maximum of the last two of them, grey, 84x84.
An episode starts with up to 30 idle actions; it ends with the game, not with a life. Stacking
states is the agent's job (``history_len``).
"""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ale_py
import numpy as np
from ale_py import ALEInterface, roms
from numpy.typing import NDArray

from relaax.client.area_average import AreaAverage
from relaax.client.simulator import Step
from relaax.errors import ConfigurationError, closest

FRAME_SIZE = 84
FRAME_SKIP = 4
MAX_IDLE_ACTIONS = 30

#: 30 minutes of play.
MAX_FRAMES = 108_000


def find_rom(name: str, folder: Path) -> Path:
    """Return the file of a game: ``NAME.bin`` in ``folder``, or ale-py's own.

    ConfigurationError, with the closest name, if it does not exist.
    """
    written = folder / f"{name}.bin"
    if written.is_file():
        return written
    known = roms.get_all_rom_ids()
    if name not in known:
        meant = closest(name, known)
        raise ConfigurationError(
            f"there is no game {name!r} in {folder}, and none in ale-py"
            + (f"; did you mean {meant}?" if meant else "")
        )
    return Path(roms.get_rom_path(name))


@dataclass(frozen=True)
class GameFactory:
    """Makes a game from the file ``rom``.

    sticky: the probability that the game repeats its last action. minimal: only the actions that
    the game knows, instead of all 18. display: show it in a window, at its own speed.
    """

    name: str
    rom: Path
    sticky: float = 0.25
    minimal: bool = False
    display: bool = False

    def __call__(self, seed: int | None) -> "Game":
        """Return a game whose random numbers begin with ``seed``."""
        return Game(self, seed)


class Game:
    """A game; states are ``uint8[84, 84]``, actions are numbers."""

    def __init__(self, made_by: GameFactory, seed: int | None) -> None:
        ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._ale = ALEInterface()
        self._ale.setFloat("repeat_action_probability", made_by.sticky)
        self._ale.setInt("max_num_frames_per_episode", MAX_FRAMES)
        if seed is not None:
            self._ale.setInt("random_seed", seed)
        if made_by.display:
            self._ale.setBool("display_screen", True)
            self._ale.setBool("sound", False)
        self._ale.loadROM(made_by.rom)
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._actions = (
            self._ale.getMinimalActionSet() if made_by.minimal else self._ale.getLegalActionSet()
        )
        height, width = self._ale.getScreenDims()
        self._last_two = np.zeros((2, height, width), np.uint8)
        self._shrink = AreaAverage((height, width), (FRAME_SIZE, FRAME_SIZE))
        self.name = made_by.name
        self.action_space: dict[str, Any] | None = {"type": "Discrete", "n": len(self._actions)}
        shape = [FRAME_SIZE, FRAME_SIZE]
        self.observation_space: dict[str, Any] | None = {
            "type": "Box", "shape": shape, "dtype": "uint8", "low": 0, "high": 255
        }  # fmt: skip

    def restart(self) -> NDArray[np.uint8]:
        """Start a game, with up to 30 idle actions, and return its observation."""
        self._ale.reset_game()
        for _ in range(self._random.randint(0, MAX_IDLE_ACTIONS)):
            self._act(ale_py.Action.NOOP)
            if self._ale.game_over():
                self._ale.reset_game()
        self._see()
        return self._state()

    def apply(self, action: int) -> Step:
        """Act for four frames; the reward is the sum of theirs."""
        reward = self._act(self._actions[action])
        is_over = self._ale.game_over(with_truncation=False)
        return Step(reward, self._state(), is_over, self._ale.game_truncated() and not is_over)

    def close(self) -> None:
        """Do nothing: the emulator ends with its process."""

    def _act(self, action: Any) -> float:
        reward = 0.0
        for frame in range(FRAME_SKIP):
            reward += self._ale.act(action)
            if frame >= FRAME_SKIP - len(self._last_two):
                self._ale.getScreenGrayscale(self._last_two[frame % len(self._last_two)])
        return reward

    def _see(self) -> None:
        """Fill both frames with the screen."""
        self._ale.getScreenGrayscale(self._last_two[0])
        self._last_two[1] = self._last_two[0]

    def _state(self) -> NDArray[np.uint8]:
        return self._shrink(self._last_two.max(axis=0))

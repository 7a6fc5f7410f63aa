"""A scenario of ViZDoom: Wydmuch et al., "ViZDoom Competitions: Playing Doom from Pixels", 2018."""

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import vizdoom
from numpy.typing import NDArray

from relaax.client.area_average import AreaAverage
from relaax.client.simulator import Step
from relaax.errors import ConfigurationError, closest

#: The game's own resolution; states are smaller.
DRAWN = (120, 160)

#: Game variables, for example health and ammunition, are mostly between 0 and this.
LARGEST_VARIABLE = 100


def find_scenario(name: str) -> Path:
    """Return the configuration of a scenario: a file, or one of ViZDoom's.

    ConfigurationError, with the closest name, if it does not exist.
    """
    if name.endswith(".cfg"):
        if not Path(name).is_file():
            raise ConfigurationError(f"there is no scenario {name}")
        return Path(name).resolve()
    bundled = {path.stem: path for path in Path(vizdoom.scenarios_path).glob("*.cfg")}
    if name not in bundled:
        meant = closest(name, bundled)
        raise ConfigurationError(
            f"ViZDoom has no scenario {name!r}"
            + (f"; did you mean {meant}?" if meant else f", but {', '.join(sorted(bundled))}")
        )
    return bundled[name]


@dataclass(frozen=True)
class GameFactory:
    """Makes a game of a scenario.

    size: height and width of a state. frame_skip: how many frames an action lasts. variables:
    whether a state has the scenario's variables beside the picture. display: show it in a window,
    at its own speed.
    """

    name: str
    scenario: Path
    size: tuple[int, int] = (60, 80)
    frame_skip: int = 4
    variables: bool = False
    display: bool = False

    def __call__(self, seed: int | None) -> "Game":
        """Return a game whose random numbers begin with ``seed``."""
        return Game(self, seed)


class Game:
    """A game; action 0 presses nothing, and action n the n-th button of the scenario.

    A state is a grey picture ``uint8[height, width]``. With variables it is a dictionary:
    ``screen`` is the picture ``uint8[height, width, 1]``, and ``variables`` are ``float32[n]``,
    divided by 100.
    """

    def __init__(self, made_by: GameFactory, seed: int | None) -> None:
        self._files = tempfile.TemporaryDirectory(prefix="relaax-vizdoom-")
        self._made_by = made_by
        self._game = game = vizdoom.DoomGame()
        game.load_config(str(made_by.scenario))
        game.set_doom_config_path(str(Path(self._files.name) / "vizdoom.ini"))
        game.set_screen_format(vizdoom.ScreenFormat.GRAY8)
        game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
        game.set_window_visible(made_by.display)
        game.set_sound_enabled(False)
        game.set_mode(vizdoom.Mode.ASYNC_PLAYER if made_by.display else vizdoom.Mode.PLAYER)
        if seed is not None:
            game.set_seed(seed)
        with contextlib.chdir(self._files.name):  # in which it makes a folder
            game.init()
        self._shrink = AreaAverage(DRAWN, made_by.size)
        self._state: Any = None
        buttons = game.get_available_buttons_size()
        self._buttons = [[False] * buttons, *np.eye(buttons, dtype=bool).tolist()]
        self.name = made_by.name
        self.action_space: dict[str, Any] | None = {"type": "Discrete", "n": buttons + 1}
        self.observation_space: dict[str, Any] | None = None

    def restart(self) -> Any:
        """Start an episode and return its observation."""
        self._game.new_episode()
        return self._look()

    def apply(self, action: int) -> Step:
        """Press a button for some frames; at the end of an episode the last state stays."""
        reward = self._game.make_action(self._buttons[action], self._made_by.frame_skip)
        if not self._game.is_episode_finished():
            return Step(reward, self._look(), False, False)
        is_late = self._game.is_episode_timeout_reached()
        return Step(reward, self._state, not is_late, is_late)

    def close(self) -> None:
        """End the game, and remove its files."""
        self._game.close()
        self._files.cleanup()

    def _look(self) -> Any:
        seen = self._game.get_state()
        picture: NDArray[np.uint8] = self._shrink(seen.screen_buffer)
        if self._made_by.variables:
            variables = np.asarray(seen.game_variables, np.float32) / LARGEST_VARIABLE
            self._state = {"screen": picture[..., None], "variables": variables}
        else:
            self._state = picture
        return self._state

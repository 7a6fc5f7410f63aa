"""Play DeepMind Lab with the actions of an RLX server.

    python random_agent.py --rlx-server localhost:7001 --level-script tests/demo_map

It takes the place of the agent of the same name that comes with the Lab: all that it needs is in
this file, in numpy and in ``relaax.client``. Beattie et al., "DeepMind Lab", 2016.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaax.client.run_options import add_run_options
from relaax.client.simulator import Step
from relaax.client.simulator_task import play_simulators
from relaax.processes.whole_numbers import positive

#: The Lab's form of an action: pixels to the right and down that the look moves in a frame, then
#: strafing to the right, forward, fire, jump and crouch.
ACTIONS = {
    "look_left": (-20, 0, 0, 0, 0, 0, 0),
    "look_right": (20, 0, 0, 0, 0, 0, 0),
    "look_up": (0, 10, 0, 0, 0, 0, 0),
    "look_down": (0, -10, 0, 0, 0, 0, 0),
    "strafe_left": (0, 0, -1, 0, 0, 0, 0),
    "strafe_right": (0, 0, 1, 0, 0, 0, 0),
    "forward": (0, 0, 0, 1, 0, 0, 0),
    "backward": (0, 0, 0, -1, 0, 0, 0),
    "fire": (0, 0, 0, 0, 1, 0, 0),
    "jump": (0, 0, 0, 0, 0, 1, 0),
    "crouch": (0, 0, 0, 0, 0, 0, 1),
}

PICTURE = "RGB_INTERLACED"

#: How many pixels of the window a pixel of a state has, in each direction.
ENLARGED = 6

#: Weights of red, green and blue in the brightness of a pixel: ITU-R BT.601.
BRIGHTNESS = np.array([0.299, 0.587, 0.114], np.float32)


@dataclass(frozen=True)
class LevelFactory:
    """Makes a level of the Lab.

    fps: frames of a second of the level. frame_skip: how many frames an action lasts. size: height
    and width of a state. display: show the states in a window, at the level's speed.
    """

    level: str
    fps: int = 60
    frame_skip: int = 4
    size: int = 84
    display: bool = False

    def __call__(self, seed: int | None) -> "Level":
        """Return a level whose random numbers begin with ``seed``."""
        return Level(self, seed)


class Level:
    """A level; states are grey pictures ``uint8[size, size]``, actions are numbers."""

    def __init__(self, made_by: LevelFactory, seed: int | None) -> None:
        # It exists only where the Lab was built.
        import deepmind_lab

        config = {"fps": made_by.fps, "width": made_by.size, "height": made_by.size}
        self._lab = deepmind_lab.Lab(
            made_by.level, [PICTURE], config={name: str(value) for name, value in config.items()}
        )
        self._seed = seed
        self._frame_skip = made_by.frame_skip
        self._actions = [np.array(action, np.intc) for action in ACTIONS.values()]
        self._state: NDArray[np.uint8] = np.zeros((made_by.size, made_by.size), np.uint8)
        rate = made_by.fps / made_by.frame_skip
        self._window = Window(made_by.size, rate) if made_by.display else None
        self.name = made_by.level
        self.action_space: dict[str, Any] | None = {"type": "Discrete", "n": len(ACTIONS)}
        self.observation_space: dict[str, Any] | None = {
            "type": "Box", "shape": list(self._state.shape), "dtype": "uint8", "low": 0, "high": 255
        }  # fmt: skip

    def restart(self) -> NDArray[np.uint8]:
        """Start an episode and return its observation."""
        self._lab.reset(seed=self._seed) if self._seed is not None else self._lab.reset()
        self._seed = None  # of the first episode alone
        return self._look()

    def apply(self, action: int) -> Step:
        """Act for some frames; at the end of an episode the last state stays."""
        reward = self._lab.step(self._actions[action], num_steps=self._frame_skip)
        if self._lab.is_running():
            return Step(reward, self._look(), False, False)
        return Step(reward, self._state, True, False)

    def close(self) -> None:
        """Close the Lab and the window."""
        self._lab.close()
        if self._window is not None:
            self._window.close()

    def _look(self) -> NDArray[np.uint8]:
        picture = self._lab.observations()[PICTURE]
        if self._window is not None:
            self._window.show(picture)
        self._state = np.rint(picture @ BRIGHTNESS).astype(np.uint8)
        return self._state


class Window:
    """Shows pictures ``uint8[size, size, 3]``, so many of them in a second at most."""

    def __init__(self, size: int, pictures_per_second: float) -> None:
        import pygame  # only a window needs it

        self._pygame = pygame
        pygame.display.init()
        self._screen = pygame.display.set_mode((size * ENLARGED, size * ENLARGED))
        self._clock = pygame.time.Clock()
        self._rate = pictures_per_second

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Show a picture, and wait until it is time."""
        surface = self._pygame.surfarray.make_surface(picture.swapaxes(0, 1))
        self._pygame.transform.scale(surface, self._screen.get_size(), self._screen)
        self._pygame.display.flip()
        self._pygame.event.pump()
        self._clock.tick(self._rate)

    def close(self) -> None:
        """Close the window."""
        self._pygame.display.quit()


def main(argv: Sequence[str]) -> int:
    """Run a command line and return the exit status."""
    parser = argparse.ArgumentParser(
        description="Play DeepMind Lab with the actions of an RLX server.", allow_abbrev=False
    )
    add_run_options(parser)
    parser.add_argument(
        "--level-script",
        default="tests/demo_map",
        metavar="NAME",
        help="the level (default %(default)s)",
    )
    parser.add_argument(
        "--fps",
        type=positive,
        default=LevelFactory.fps,
        metavar="N",
        help="frames of a second of the level (default %(default)s)",
    )
    parser.add_argument(
        "--frame-skip",
        type=positive,
        default=LevelFactory.frame_skip,
        metavar="N",
        help="how many frames an action lasts (default %(default)s)",
    )
    parser.add_argument("--display", action="store_true", help="show the level in a window")
    arguments = parser.parse_args([with_dashes(word) for word in argv])
    level = arguments.level_script
    factory = LevelFactory(level, arguments.fps, arguments.frame_skip, display=arguments.display)
    return play_simulators(arguments, level, factory)


def with_dashes(word: str) -> str:
    """Return ``--rlx_server``, as older agents were called, as ``--rlx-server``."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

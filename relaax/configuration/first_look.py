"""A look at the first steps of environments, which may be hard to learn from."""

from math import inf

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import ConfigBase
from relaax.configuration.announced_spaces import Doubt, Doubts, doubts_of_sizes, large_pixels
from relaax.observations import Observations
from relaax.spaces import Bounds

#: So many times a worker looks, at the steps of all its environments that have come together.
LOOKS = 1000

#: Numbers of an image beyond this, not of bytes, are doubtful.
MOST_PIXEL = 10

#: The dimensions of images [B, height, width, channels].
_IMAGES = 4


class FirstLook:
    """Logs once each doubt about the rewards and states that a worker's environments send."""

    def __init__(self, doubts: Doubts, config: ConfigBase) -> None:
        self._doubts = doubts
        self._largest_reward = config.largest_reward()
        self._looks_at_states = not config.scales_states()
        self._left = LOOKS
        #: The largest size of each number of an observation, by its name.
        self._sizes: dict[str, Bounds] = {}

    def take(self, rewards: npt.NDArray[np.floating], states: Observations) -> bool:
        """Look at rewards [S] and states [A, ...]; return whether there is more to look at."""
        self._left -= 1
        if len(rewards):
            self._look_at_rewards(float(np.abs(rewards).max()))
        by_name = states if isinstance(states, dict) else {"": states}
        floats = {n: part for n, part in by_name.items() if len(part) and part.dtype.kind == "f"}
        self._look_at_images(floats)
        if self._looks_at_states:
            self._note_sizes(floats)
        if self._left == 0:
            for name, sizes in self._sizes.items():
                for doubt in doubts_of_sizes(_sender(name), sizes):
                    self._doubts.say(*doubt)
        return self._left > 0

    def _look_at_rewards(self, largest: float) -> None:
        if largest > self._largest_reward:
            self._largest_reward = inf
            self._doubts.say(
                Doubt.LARGE_REWARDS,
                f"an environment has sent a reward of size {largest:.4g}: values of that size are "
                "learnt slowly; let reward_scale in the algorithm section be about "
                f"{1 / largest:.1g}",
            )

    def _look_at_images(self, states: dict[str, npt.NDArray[np.floating]]) -> None:
        """Look at images of numbers; bytes are divided by 255."""
        for name, part in states.items():
            if part.ndim == _IMAGES and (highest := float(np.abs(part).max())) > MOST_PIXEL:
                self._doubts.say(*large_pixels(_sender(name), highest, "another type than uint8"))

    def _note_sizes(self, states: dict[str, npt.NDArray[np.floating]]) -> None:
        for name, part in states.items():
            largest = np.abs(part).max(axis=0).astype(np.float64)
            self._sizes[name] = np.maximum(largest, self._sizes.get(name, largest))


def _sender(name: str) -> str:
    """Return whose observation is meant."""
    return f"environments ({name})" if name else "environments"


def first_look(doubts: Doubts, config: object, *, learns: bool) -> FirstLook | None:
    """Return the look at the first steps of a worker, or of an actor.

    None where nothing ``learns`` from them, and for a configuration that is no ``ConfigBase``.
    """
    return FirstLook(doubts, config) if learns and isinstance(config, ConfigBase) else None

"""A stand-in for DeepMind Lab, which Bazel builds: the same interface, as strict as the real one.

https://github.com/google-deepmind/lab/blob/master/docs/users/python_api.md
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ACTIONS = [
    ("LOOK_LEFT_RIGHT_PIXELS_PER_FRAME", -512, 512),
    ("LOOK_DOWN_UP_PIXELS_PER_FRAME", -512, 512),
    ("STRAFE_LEFT_RIGHT", -1, 1),
    ("MOVE_BACK_FORWARD", -1, 1),
    ("FIRE", 0, 1),
    ("JUMP", 0, 1),
    ("CROUCH", 0, 1),
]

#: Frames of an episode.
LENGTH = 60


class Lab:
    """A level in which each frame forward is rewarded, and makes the picture brighter.

    A picture grows brighter from its first line to its last one, by one each.
    """

    def __init__(
        self,
        level: str,
        observations: Sequence[str],
        config: Mapping[str, str] | None = None,
        renderer: str = "software",
    ) -> None:
        if level != "tests/demo_map":
            raise ValueError(f"Failed to load level script {level!r}")
        if list(observations) != ["RGB_INTERLACED"]:
            raise ValueError(f"Unknown observation in {observations}")
        for name, value in (config or {}).items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise TypeError("config must be a dictionary of strings")
        settings = {"width": "320", "height": "240", "fps": "60", **(config or {})}
        self._shape = (int(settings["height"]), int(settings["width"]), 3)
        self._fps = int(settings["fps"])
        self._frames: int | None = None
        self._forward = 0

    def reset(self, episode: int = -1, seed: int | None = None) -> bool:
        """Start an episode."""
        self._frames, self._forward = 0, 0
        return True

    def step(self, action: NDArray[np.intc], num_steps: int = 1) -> float:
        """Act for some frames."""
        if not self.is_running():
            raise RuntimeError("Environment in wrong status!")
        if not isinstance(action, np.ndarray) or action.dtype != np.intc or action.shape != (7,):
            raise ValueError("action must be an array of np.intc, with shape (7,)")
        for value, (name, low, high) in zip(action, _ACTIONS, strict=True):
            if not low <= value <= high:
                raise ValueError(f"{name} must be between {low} and {high}")
        assert self._frames is not None
        frames = min(num_steps, LENGTH - self._frames)
        self._frames += frames
        self._forward += frames * int(action[3])
        return float(frames * action[3])

    def is_running(self) -> bool:
        """Whether an episode goes on."""
        return self._frames is not None and self._frames < LENGTH

    def observations(self) -> dict[str, Any]:
        """What is seen; there is nothing when no episode goes on."""
        if not self.is_running():
            raise RuntimeError("Environment in wrong status!")
        lines = 100 + self._forward + np.arange(self._shape[0])
        picture = np.broadcast_to(lines[:, np.newaxis, np.newaxis], self._shape)
        return {"RGB_INTERLACED": np.clip(picture, 0, 255).astype(np.uint8)}

    def observation_spec(self) -> list[dict[str, Any]]:
        """What can be seen."""
        return [{"name": "RGB_INTERLACED", "dtype": np.uint8, "shape": self._shape}]

    def action_spec(self) -> list[dict[str, Any]]:
        """What can be done."""
        return [{"name": name, "min": low, "max": high} for name, low, high in _ACTIONS]

    def fps(self) -> int:
        """Frames of a second."""
        return self._fps

    def close(self) -> None:
        """End the level."""
        self._frames = None

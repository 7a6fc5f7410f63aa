"""CartPole that fails once, after some steps: ``faulty_environment:FaultyCartPole-v1``."""

import os
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

#: The step in which it fails.
AT = 30


def _raises() -> Any:
    raise OSError("the game is gone")


def _exits() -> Any:
    os._exit(7)


def _hangs() -> Any:
    time.sleep(3600)


def _sends_nan() -> Any:
    return np.full(4, np.nan, np.float32), 1.0, False, False, {}


_FAULTS = {"raises": _raises, "exits": _exits, "hangs": _hangs, "nan": _sends_nan}


class Faulty(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Fails in the way that ``how`` says, unless one has done so before, and made ``once``."""

    def __init__(self, environment: gymnasium.Env[Any, Any], how: str, once: str) -> None:
        super().__init__(environment)
        self._fail = _FAULTS[how]
        self._once = Path(once)
        self._steps = 0

    def step(self, action: Any) -> Any:
        self._steps += 1
        if self._steps == AT and not self._once.exists():
            self._once.touch()
            return self._fail()
        return self.env.step(action)


def faulty_cart_pole(how: str, once: str) -> gymnasium.Env[Any, Any]:
    """Return one."""
    return Faulty(gymnasium.make("CartPole-v1"), how, once)


gymnasium.register("FaultyCartPole-v1", faulty_cart_pole)

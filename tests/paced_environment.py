"""Environments in real time: a step takes some milliseconds, as that of a simulator may.

Those that play as fast as they can leave no processor to what a test waits for. Gymnasium knows
them as ``paced_environment:PacedCartPole-v1`` and ``paced_environment:PacedPendulum-v1``.
"""

import time
from typing import Any

import gymnasium

#: Seconds of a step.
STEP_S = 0.01


class Paced(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Takes its time for each step."""

    def step(self, action: Any) -> Any:
        time.sleep(STEP_S)
        return self.env.step(action)


def _register(name: str) -> None:
    spec = gymnasium.spec(name)
    gymnasium.register(
        f"Paced{name}",
        lambda **keys: Paced(gymnasium.make(name, **keys)),
        max_episode_steps=spec.max_episode_steps,
    )


for name in ("CartPole-v1", "Pendulum-v1"):
    _register(name)

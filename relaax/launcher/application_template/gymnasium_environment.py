"""The environment: one that Gymnasium knows, and the program that connects it to RELAAX.

    python environment.py --rlx-server localhost:7001 --env CartPole-v1 --count 8

Wrap it in ``make_environment``; for one of your own, register it there, or return it.
"""

import sys
from functools import partial

import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from relaax.client.gymnasium_factory import Environment, Environments
from relaax.client.gymnasium_runner import run_command
from relaax.client.run_options import parse_options

ENV_ID = "CartPole-v1"


def make_environment(env_id: str) -> Environment:
    """Return a new environment."""
    return gymnasium.make(env_id)


class Factory:
    """Makes one environment, or several that step together on one connection."""

    def __init__(self, env_id: str) -> None:
        self._make = partial(make_environment, env_id)

    def __call__(self) -> Environment:
        """Return a new environment."""
        return self._make()

    def vector(self, count: int) -> Environments:
        """Return ``count`` environments that step together."""
        return SyncVectorEnv([self._make] * count, autoreset_mode=AutoresetMode.SAME_STEP)


if __name__ == "__main__":
    options = parse_options(["--env", ENV_ID, *sys.argv[1:]])
    sys.exit(run_command(options, Factory(options.env)))

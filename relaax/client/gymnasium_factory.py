"""Makes Gymnasium environments: one, or several that step together."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

Environment: TypeAlias = gymnasium.Env[Any, Any]
Environments: TypeAlias = VectorEnv[Any, Any, Any]
EnvironmentFactory: TypeAlias = Callable[[], Environment]


class VectorEnvironmentFactory(Protocol):
    """Makes several environments at once."""

    def vector(self, count: int) -> Environments:
        """Return ``count`` environments that step together."""


@dataclass(frozen=True)
class GymnasiumFactory:
    """Makes the environment that Gymnasium has registered under ``env_id``."""

    env_id: str
    kwargs: dict[str, Any]

    def __call__(self) -> Environment:
        """Return a new environment."""
        return gymnasium.make(self.env_id, **self.kwargs)

    def vector(self, count: int) -> Environments:
        """Return ``count`` environments that step together.

        They are Gymnasium's own vector environment where there is one for the id.
        """
        module, _, name = self.env_id.rpartition(":")
        if module:
            importlib.import_module(module)  # registers the environment
        spec = gymnasium.spec(name)
        if spec.vector_entry_point is not None:
            return gymnasium.make_vec(self.env_id, num_envs=count, **self.kwargs)
        return SyncVectorEnv([self] * count, autoreset_mode=AutoresetMode.SAME_STEP)

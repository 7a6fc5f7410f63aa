"""The environments of actors: Gymnasium's, PettingZoo's, and classes of the user's own."""

import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import gymnasium

from relaax.client.gymnasium_factory import Environment, EnvironmentFactory, GymnasiumFactory
from relaax.client.pettingzoo_environments import (
    ParallelEnvironment,
    PettingZooEnvironment,
    PettingZooFactory,
    TurnEnvironment,
)
from relaax.client.simulator import RunObserver
from relaax.errors import ConfigurationError

#: The end of a Python file's name; a class of the user's follows it.
_FILE = ".py"

#: Makes an environment with several agents, whose first game gets the seed.
AgentsFactory: TypeAlias = Callable[[int | None, RunObserver | None], PettingZooEnvironment]


@dataclass(frozen=True)
class ClassFactory:
    """Makes an environment of a class in a file."""

    file: Path
    name: str
    kwargs: Mapping[str, Any]

    def __call__(self) -> Environment:
        """Return a new environment; ConfigurationError if there is no such file or class."""
        environment: Environment = self.load()(**self.kwargs)
        return environment

    def load(self) -> Any:
        """Return the class; ConfigurationError if there is no such file or class."""
        make = getattr(_module_of(self.file), self.name, None)
        if make is None:
            raise ConfigurationError(f"--env: {self.file} has no class {self.name!r}")
        return make


@cache
def _module_of(file: Path) -> ModuleType:
    """Return the module of a file, whose code runs once in a process.

    It may import files beside it, as if Python had been started with it.
    """
    folder = str(file.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ConfigurationError(f"--env: there is no file {file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class AgentsOfClass:
    """Makes an environment of a class that has the methods of one of PettingZoo's interfaces."""

    make: Callable[..., Any]
    kwargs: Mapping[str, Any]

    def __call__(
        self, seed: int | None, observer: RunObserver | None = None
    ) -> PettingZooEnvironment:
        """Return a new environment."""
        kind = TurnEnvironment if hasattr(self.make, "last") else ParallelEnvironment
        return kind(self.make(**self.kwargs), seed, observer)


def names_class(env: str) -> bool:
    """Return whether ``env`` is a class in a file, and no name of Gymnasium's."""
    return env.rpartition(":")[0].endswith(_FILE)


def environment_factory(env: str, kwargs: Mapping[str, Any]) -> EnvironmentFactory:
    """Return the factory of ``env``: a Gymnasium id, MODULE:ID, or FILE.py:CLASS."""
    if names_class(env):
        return _class_factory(env, kwargs)
    return GymnasiumFactory(env, dict(kwargs))


def agents_factory(env: str, kwargs: Mapping[str, Any]) -> AgentsFactory | None:
    """Return the factory of an environment with several agents; None for one of Gymnasium's.

    ``env`` is a name in PettingZoo's registry, a module with ``parallel_env`` or ``env``, or
    FILE.py:CLASS, whose spaces are methods as PettingZoo has it.
    """
    if names_class(env):
        made_by = _class_factory(env, kwargs).load()
        has_agents = callable(getattr(made_by, "observation_space", None))
        return AgentsOfClass(made_by, kwargs) if has_agents else None
    if ":" in env or env in gymnasium.registry:
        return None
    is_of_pettingzoo = _is_registered(env) if "/" in env else _is_module(env)
    return PettingZooFactory(env, dict(kwargs)) if is_of_pettingzoo else None


def _class_factory(env: str, kwargs: Mapping[str, Any]) -> ClassFactory:
    file, _, name = env.rpartition(":")
    return ClassFactory(Path(file), name, kwargs)


def _is_registered(env: str) -> bool:
    """Return whether PettingZoo, which need not be installed, has the name."""
    if importlib.util.find_spec("pettingzoo") is None:
        return False
    import pettingzoo

    return env in {*pettingzoo.aec_registry, *pettingzoo.parallel_registry}


def _is_module(env: str) -> bool:
    """Return whether there is a module of the name."""
    if not all(part.isidentifier() for part in env.split(".")):
        return False
    try:
        return importlib.util.find_spec(env) is not None
    except ImportError:  # its package
        return False

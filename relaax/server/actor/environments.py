"""Makes the environment that an option names."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaax.client.gymnasium_factory import Environment, EnvironmentFactory, GymnasiumFactory
from relaax.errors import ConfigurationError

#: How a file of Python ends: what follows it is a class of the user's.
_FILE = ".py"


@dataclass(frozen=True)
class ClassFactory:
    """Makes an environment of a class in a file."""

    file: Path
    name: str
    kwargs: Mapping[str, Any]

    def __call__(self) -> Environment:
        """Return a new environment; ConfigurationError if there is no such file or class."""
        spec = importlib.util.spec_from_file_location(self.file.stem, self.file)
        if spec is None or spec.loader is None or not self.file.is_file():
            raise ConfigurationError(f"--env: there is no file {self.file}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        make = getattr(module, self.name, None)
        if make is None:
            raise ConfigurationError(f"--env: {self.file} has no class {self.name!r}")
        environment: Environment = make(**self.kwargs)
        return environment


def names_class(env: str) -> bool:
    """Return whether ``env`` is a class in a file, and no name of Gymnasium's."""
    return env.rpartition(":")[0].endswith(_FILE)


def environment_factory(env: str, kwargs: Mapping[str, Any]) -> EnvironmentFactory:
    """Return what makes ``env``: a Gymnasium id, MODULE:ID, or FILE.py:CLASS."""
    file, _, name = env.rpartition(":")
    if names_class(env):
        return ClassFactory(Path(file), name, kwargs)
    return GymnasiumFactory(env, dict(kwargs))

"""Loads an algorithm's package from its folder."""

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from relaax.algorithm_base import AgentBase, BridgeControlBase, ConfigBase, ParameterServerBase
from relaax.common.errors import ConfigurationError
from relaax.server.common.configuration.load import AlgorithmSection, explain

EXPORTS = ("Agent", "Bridge", "BridgeControl", "Config", "ParameterServer")


class Algorithm:
    """A loaded package. A class is looked up when it is asked for: a package may import its agent,
    and with it TensorFlow, only then."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    @property
    def Agent(self) -> type[AgentBase]:  # noqa: N802
        """The agent's class."""
        return self._export("Agent")

    @property
    def BridgeControl(self) -> type[BridgeControlBase]:  # noqa: N802
        """The class that makes both ends of the bridge."""
        return self._export("BridgeControl")

    @property
    def Config(self) -> type[ConfigBase]:  # noqa: N802
        """The configuration's class."""
        return self._export("Config")

    @property
    def ParameterServer(self) -> type[ParameterServerBase]:  # noqa: N802
        """The parameter server's class."""
        return self._export("ParameterServer")

    def _export(self, name: str) -> Any:
        try:
            return getattr(self.module, name)
        except ImportError as error:
            raise ConfigurationError(
                f"algorithm {self.module.__path__[0]}: {name} cannot be imported: {error}"
            ) from error


def load_algorithm(directory: Path) -> Algorithm:
    """Import the package in ``directory``; ConfigurationError names the folder and the cause.

    The module's name is made of the folder's name and a digest of its path, so that it collides
    neither with an installed package nor with another algorithm of that name. Inside, a package
    imports its own modules relatively.
    """
    directory = directory.resolve()
    digest = hashlib.sha256(str(directory).encode()).hexdigest()[:8]
    name = f"relaax_algorithm_{directory.name}_{digest}"
    module = sys.modules.get(name) or _import(name, directory)
    missing = sorted(set(EXPORTS) - set(getattr(module, "__all__", ())) - set(dir(module)))
    if missing:
        raise ConfigurationError(f"algorithm {directory} does not export {', '.join(missing)}")
    return Algorithm(module)


def make_config(algorithm: Algorithm, section: AlgorithmSection) -> ConfigBase:
    """Return the algorithm's typed configuration; ConfigurationError names the file and key."""
    try:
        return algorithm.Config(section.parameters)
    except ValidationError as error:
        reason = "; ".join(explain(error))
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)
    raise ConfigurationError(f"{section.source}: algorithm: {reason}")


def _import(name: str, directory: Path) -> ModuleType:
    initial = directory / "__init__.py"
    if not initial.is_file():
        raise ConfigurationError(f"algorithm {directory} is no folder with an __init__.py")
    spec = importlib.util.spec_from_file_location(
        name, initial, submodule_search_locations=[str(directory)]
    )
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"algorithm {directory} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigurationError(
            f"algorithm {directory} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return module

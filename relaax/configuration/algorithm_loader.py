"""Loads an algorithm's package from its folder."""

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from relaax.algorithm_base import (
    AgentBase,
    BatchAgentBase,
    BridgeControlBase,
    ConfigBase,
    Learner,
    Metrics,
    ParameterLink,
    ParameterServerBase,
    Saver,
)
from relaax.configuration.commands import ACTOR, INFERENCE_SERVER, LEARNER, REPLAY_SERVER
from relaax.configuration.load import AlgorithmSection
from relaax.configuration.mistakes import explain
from relaax.configuration.space_check import cause, require_spaces
from relaax.errors import ConfigurationError, closest
from relaax.parameters import BridgeControl
from relaax.replay.specs import ReplaySpec
from relaax.telemetry.throttled_log import in_words

EXPORTS = ("Agent", "Config", "ParameterServer")

#: Further exports, which a package may have.
OPTIONAL_EXPORTS = (
    "BridgeControl",
    "make_actor",
    "make_batch_agent",
    "make_learner",
    "prepare_to_fork",
    "replay_spec",
)

#: By program that belongs to a learner: why it is not needed where workers learn.
_WITHOUT_LEARNER = {
    LEARNER.name: "its workers learn, and relaax-learner is not needed",
    REPLAY_SERVER.name: "nothing is stored for it, and relaax-replay-server is not needed",
    INFERENCE_SERVER.name: "its workers have the policy, and relaax-inference-server is not needed",
    ACTOR.name: "its environments connect to relaax-rlx-server",
}


class Algorithm:
    """A loaded package.

    An export is looked up when it is asked for: a package may import its agent, and with it
    TensorFlow, only then. ConfigurationError says why one cannot be imported.
    """

    Agent: Callable[..., AgentBase]
    Config: Callable[[Mapping[str, Any]], ConfigBase]
    ParameterServer: Callable[[ConfigBase, Saver, Metrics], ParameterServerBase]
    #: Called with configuration, bridge, seed, and whether it learns in the background; where a
    #: learner is a process of its own, also with ``experience``, where steps are delivered, and
    #: perhaps with ``inference``, which chooses, or with ``answers``, to choose for others.
    make_batch_agent: Callable[..., BatchAgentBase]

    #: Called with configuration, session, number and mode; returns an ``Actor`` of
    #: ``relaax.compat.surreal``.
    make_actor: Callable[..., Any]
    #: Called with configuration and seed.
    make_learner: Callable[[ConfigBase, int | None], Learner]
    #: Called with a configuration; returns the storage and tables.
    replay_spec: Callable[[ConfigBase], ReplaySpec]

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    @property
    def knows_batches(self) -> bool:
        """Whether it exports an agent for many environments at once."""
        return self._exports("make_batch_agent")

    @property
    def has_actor(self) -> bool:
        """Whether it brings an actor of its own for ``relaax-actor``."""
        return self._exports("make_actor")

    def has_learner(self, config: ConfigBase) -> bool:
        """Return whether a process of its own learns, from experience that workers deliver."""
        chosen = config.has_learner() if isinstance(config, ConfigBase) else None
        return self._exports("make_learner") if chosen is None else chosen

    def require_learner(self, config: ConfigBase, program: str) -> None:
        """Raise ConfigurationError for a program that is not needed where workers learn."""
        if program in _WITHOUT_LEARNER and not self.has_learner(config):
            folder = self.module.__path__[0]
            raise ConfigurationError(
                f"algorithm {folder} has no learner: {_WITHOUT_LEARNER[program]}"
            )

    def require_remote_inference(self, config: ConfigBase) -> None:
        """Raise ConfigurationError where its agents cannot let other processes choose."""
        folder, why_not = self.module.__path__[0], None
        if not self.has_learner(config):
            why_not = "its workers learn, and need the parameters"
        elif not self.knows_batches:
            why_not = "it brings an actor of its own, which has the policy"
        elif not {"inference", "answers"} <= {*inspect.signature(self.make_batch_agent).parameters}:
            why_not = "its make_batch_agent has no arguments inference and answers"
        if why_not is not None:
            raise ConfigurationError(
                f"algorithm {folder}: inference servers cannot choose here: {why_not}"
            )

    def require_deterministic_actions(self) -> None:
        """Raise ConfigurationError where its agents cannot choose without noise in a training."""
        if not self.knows_batches or "deterministic" not in {
            *inspect.signature(self.make_batch_agent).parameters
        }:
            raise ConfigurationError(
                f"algorithm {self.module.__path__[0]}: actions that are learnt from cannot be the "
                "most probable ones here: its make_batch_agent has no argument deterministic"
            )

    @property
    def BridgeControl(self) -> Callable[[], BridgeControlBase]:  # noqa: N802
        """The package's own transport, or else the generic one."""
        if self._exports("BridgeControl"):
            own: Callable[[], BridgeControlBase] = self._export("BridgeControl")
            return own
        return BridgeControl

    def make_agent(
        self, config: ConfigBase, parameter_server: ParameterLink, seed: int
    ) -> AgentBase:
        """Return an agent; it is given ``seed`` if it has an argument of this name."""
        make = self.Agent
        if "seed" in inspect.signature(make).parameters:
            return make(config, parameter_server, seed=seed)
        return make(config, parameter_server)

    def prepare_to_fork(self) -> None:
        """Import the modules that forked processes share; ConfigurationError if that fails."""
        if not self._exports("prepare_to_fork"):
            _ = self.make_batch_agent if self._exports("make_learner") else self.Agent
            return
        prepare = self._export("prepare_to_fork")
        with self._naming("prepare_to_fork fails"):
            prepare()

    def __getattr__(self, name: str) -> Any:
        if name not in EXPORTS + OPTIONAL_EXPORTS:
            raise AttributeError(f"an algorithm has no {name!r}")
        return self._export(name)

    def _exports(self, name: str) -> bool:
        return _missing(self.module, [name]) == []

    def _export(self, name: str) -> Any:
        with self._naming(f"{name} cannot be imported"):
            try:
                return getattr(self.module, name)
            except AttributeError as error:
                if error.obj is not self.module:
                    raise
                lacks = f"__init__.py has {name} in __all__, but does not import it"
                if name not in getattr(self.module, "__all__", ()):
                    lacks = f"this configuration needs {name}, which __init__.py does not export"
                directory = Path(self.module.__path__[0])
                raise ConfigurationError(f"algorithm {directory}: {lacks}") from error

    @contextmanager
    def _naming(self, failure: str) -> Iterator[None]:
        """Raise a ConfigurationError for whatever the package's modules raise."""
        try:
            yield
        except ConfigurationError:
            raise
        except Exception as error:  # whatever its modules do when they are imported
            directory = Path(self.module.__path__[0])
            raise ConfigurationError(
                f"algorithm {directory}: {failure}: {cause(error, directory)}"
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
    missing = _missing(module, _required(module))
    if missing:
        raise ConfigurationError(f"algorithm {directory} does not export {', '.join(missing)}")
    return Algorithm(module)


def _required(module: ModuleType) -> tuple[str, ...]:
    """Return the exports that a package must have; beside a learner, workers act in batches."""
    if _missing(module, ["make_learner"]):
        return EXPORTS
    acts = "make_batch_agent" if _missing(module, ["make_actor"]) else "make_actor"
    return ("Config", "ParameterServer", acts, "make_learner", "replay_spec")


def _missing(module: ModuleType, exports: Iterable[str]) -> list[str]:
    return sorted(set(exports) - set(getattr(module, "__all__", ())) - set(dir(module)))


def make_config(algorithm: Algorithm, section: AlgorithmSection) -> ConfigBase:
    """Return the algorithm's typed configuration, whose spaces are well formed.

    ConfigurationError names the file and key.
    """
    try:
        config = algorithm.Config(section.parameters)
    except ConfigurationError:
        raise
    except Exception as error:  # whatever an algorithm's own code raises
        raise ConfigurationError(_mistake(error, section)) from error
    require_spaces(config, section.directory)
    return config


def _mistake(error: Exception, section: AlgorithmSection) -> str:
    """Return in one line why a ``Config`` cannot be made, and the source of each wrong value."""
    by_flag = {f"{key.replace('.', ': ')}: ": key for key in section.settings}
    in_file, given = [], []
    for line in _mistakes(error, section):
        start = next((start for start in by_flag if line.startswith(start)), None)
        if start is None:
            in_file.append(line)
        else:
            given.append(f"--set algorithm.{by_flag[start]}: {line.removeprefix(start)}")
    if in_file:
        given.insert(0, f"{section.source}: algorithm: {'; '.join(in_file)}")
    return "; ".join(given)


def _mistakes(error: Exception, section: AlgorithmSection) -> list[str]:
    match error:
        case ValidationError():
            return explain(error)
        case KeyError(args=(str(key),)) if key not in section.parameters:
            close = closest(key, section.parameters)
            return [f"{key}: is missing" + (f"; did you mean it by {close}?" if close else "")]
        case ValueError():
            return [(str(error) or in_words(error)).removeprefix("algorithm: ")]
    return [f"Config fails: {cause(error, section.directory)}"]


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
            f"algorithm {directory} cannot be imported: {cause(error, directory)}"
        ) from error
    return module

"""Experiments as Python classes, by name: seed 002, "Configuring Your Experiment"."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from relaax.errors import ConfigurationError
from relaax.experiments.scheduling import ExperimentScheduling
from relaax.experiments.workers import ExperimentConfig


class Experiment:
    """Derive from it, return both halves of an experiment, and register the class."""

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers of each kind there are, and their resources."""
        raise NotImplementedError

    def initial_setup(self) -> ExperimentConfig:
        """Return the configurations of all workers."""
        raise NotImplementedError


class Registry:
    """Names that a file of experiments has registered: experiments, environments, policies."""

    def __init__(self) -> None:
        self.experiments: dict[str, type[Experiment]] = {}
        #: By type: FILE.py:CLASS, MODULE:NAME, or a name of Gymnasium.
        self.environments: dict[str, str] = {}
        #: By type: keys of the algorithm's section.
        self.policies: dict[str, Mapping[str, Any]] = {}


#: The last one takes what is registered.
_REGISTRIES = [Registry()]


@contextmanager
def collecting() -> Iterator[Registry]:
    """Collect the names that are registered meanwhile, apart from earlier ones."""
    _REGISTRIES.append(Registry())
    try:
        yield _REGISTRIES[-1]
    finally:
        _REGISTRIES.pop()


def register_experiment(name: str, experiment: type[Experiment]) -> None:
    """Register a class under a name that no other one has; ConfigurationError otherwise."""
    _register(_REGISTRIES[-1].experiments, "experiment", name, experiment)


def register_environment(type_: str, made_by: str) -> None:
    """Register a type of environments: FILE.py:CLASS, MODULE:NAME, or a name of Gymnasium.

    ConfigurationError for the class itself: other processes make the environment by its name.
    """
    if not isinstance(made_by, str):
        raise ConfigurationError(
            f"register_environment({type_!r}, …): give a text such as 'my_file.py:MyEnvironment' "
            f"by which worker processes find the class, and not {made_by!r}"
        )
    _register(_REGISTRIES[-1].environments, "environment", type_, made_by)


def register_policy(type_: str, keys: Mapping[str, Any]) -> None:
    """Register a type of policies by keys of the algorithm's section, which ``args`` add to.

    ConfigurationError for anything else, such as a class of a network.
    """
    if not isinstance(keys, Mapping):
        raise ConfigurationError(
            f"register_policy({type_!r}, …): give the keys of the algorithm's section, such as "
            f"{{'state_size': [4], 'action_size': 2}}, and not {keys!r}"
        )
    _register(_REGISTRIES[-1].policies, "policy", type_, keys)


def _register(known: dict[str, Any], kind: str, name: str, value: Any) -> None:
    if not name or "/" in name:
        raise ConfigurationError(f"the {kind} {name!r} needs a name without '/'")
    if known.get(name, value) != value:
        raise ConfigurationError(f"two {kind}s are named {name!r}")
    known[name] = value

"""Copies and checks of everything that an environment returns.

Many environments fill one array again and again, and return it each time. An earlier observation is
then overwritten: the last one of an episode in a vector environment, all frames of a stack.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from relaax.client.checks import single_flag, single_number
from relaax.client.gymnasium_factory import Environment
from relaax.client.gymnasium_observations import KeptObservations
from relaax.errors import ConfigurationError

#: Takes a value of the environment; returns its replacement.
_Replaced = Callable[[Any], Any]


def keep_observations(environment: Environment) -> Environment:
    """Let ``environment``, and wrappers that are not Gymnasium's, return copies from now on.

    Returns ``environment``. It is the same object, so that wrappers that know it find it.
    """
    for layer in _layers(environment):
        if _may_return_its_own(layer):
            _replace(layer, own)
    return environment


def keep_and_check(
    environment: Environment,
    name: str,
    observations: KeptObservations,
    note: Callable[[Any], object] = lambda observation: None,
) -> None:
    """Do the same, and check all values of ``environment``; errors begin with its ``name``.

    ``observations`` keeps the observations of all environments on a connection. They are returned
    in the types in which they are sent, after ``note`` was called. TypeError or ValueError for a
    value that cannot be sent, and for a reward or a flag of another type.
    """
    check = _Check(name, observations, note)
    _replace(environment, check, check.reward, check.flag)
    keep_observations(environment)


def require_numpy(observations: Any) -> None:
    """Raise ConfigurationError for tensors of another library: actions would have to be some."""
    for part in _parts_of(observations):
        if not isinstance(part, np.ndarray | np.generic | int | float):
            kind = f"{type(part).__module__.partition('.')[0]}.{type(part).__name__}"
            raise ConfigurationError(
                f"the vector environment returns {kind}, and not numpy's arrays: "
                "gymnasium.wrappers.vector.ArrayConversion, with target_xp=numpy, converts its "
                "observations and actions"
            )


def _parts_of(observations: Any) -> Iterator[Any]:
    """Yield the parts of dicts, tuples and lists."""
    if isinstance(observations, dict):
        observations = list(observations.values())
    if not isinstance(observations, tuple | list):
        yield observations
        return
    for part in observations:
        yield from _parts_of(part)


def own(observation: Any) -> Any:
    """Return a copy that nothing else can change."""
    if type(observation) is np.ndarray and not observation.dtype.hasobject:
        return observation.copy()  # as nearly always
    return deepcopy(observation)


@dataclass(frozen=True)
class _Check:
    name: str
    observations: KeptObservations
    note: Callable[[Any], object]

    def __call__(self, observation: Any) -> Any:
        """Return a copy of an observation that can be sent."""
        try:
            kept = self.observations.kept(observation)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self.name}: {error}") from error
        self.note(kept)
        return kept

    def reward(self, reward: Any) -> float:
        """Return a reward as a number."""
        return single_number(f"{self.name}: the reward", reward)

    def flag(self, what: str, flag: Any) -> bool:
        """Return whether an episode has ended so."""
        return single_flag(f"{self.name}: {what}", flag)


@dataclass(frozen=True)
class _Reset:
    """In the place of an environment's ``reset``."""

    reset: Callable[..., Any]
    seen: _Replaced

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        observation, info = self.reset(*args, **kwargs)
        return self.seen(observation), info


@dataclass(frozen=True)
class _Step:
    """In the place of an environment's ``step``."""

    step: Callable[[Any], Any]
    seen: _Replaced
    earned: _Replaced
    ended: Callable[[str, Any], Any]

    def __call__(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.step(action)
        return (
            self.seen(observation),
            self.earned(reward),
            self.ended("terminated", terminated),
            self.ended("truncated", truncated),
            info,
        )


def _replace(
    layer: Any,
    seen: _Replaced,
    earned: _Replaced = lambda reward: reward,
    ended: Callable[[str, Any], Any] = lambda what, flag: flag,
) -> None:
    """Replace the methods of ``layer``, unless that was done before."""
    if not isinstance(vars(layer).get("step"), _Step):
        layer.reset, layer.step = _Reset(layer.reset, seen), _Step(layer.step, seen, earned, ended)


def _layers(environment: Any) -> Iterator[Any]:
    """Yield an environment, and those inside of it."""
    yield environment
    while isinstance(environment, gymnasium.Wrapper):
        environment = environment.env
        yield environment


def _may_return_its_own(layer: Any) -> bool:
    """Return whether the code of ``layer`` is not Gymnasium's, or calls a function of others."""
    is_gymnasiums = type(layer).__module__.startswith("gymnasium.wrappers")
    return not is_gymnasiums or isinstance(layer, gymnasium.wrappers.TransformObservation)

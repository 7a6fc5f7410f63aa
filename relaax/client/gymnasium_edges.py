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
from relaax.client.episode_info import with_floats
from relaax.client.gymnasium_factory import Environment
from relaax.client.gymnasium_observations import KeptObservations
from relaax.client.gymnasium_spaces import GymnasiumSpace, leaves
from relaax.errors import ConfigurationError


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

    def seen(observation: Any) -> Any:
        try:
            kept = observations.kept(observation)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from error
        note(kept)
        return kept

    _replace(
        environment,
        seen,
        lambda reward: single_number(f"{name}: the reward", reward),
        lambda flag, value: single_flag(f"{name}: {flag}", value),
        with_floats,
    )
    keep_observations(environment)


def require_numpy(space: GymnasiumSpace, observations: Any) -> None:
    """Raise ConfigurationError for tensors of another library: actions would have to be some."""
    for leaf in leaves(space):
        part = leaf.value_in(observations)
        while isinstance(part, list | tuple) and part:
            part = part[0]
        if not isinstance(part, np.ndarray | np.generic | int | float | list | tuple):
            kind = f"{type(part).__module__.partition('.')[0]}.{type(part).__name__}"
            raise ConfigurationError(
                f"the vector environment returns {kind}, and not numpy's arrays: "
                "gymnasium.wrappers.vector.ArrayConversion, with target_xp=numpy, converts its "
                "observations and actions"
            )


def own(observation: Any) -> Any:
    """Return a copy that nothing else can change."""
    if type(observation) is np.ndarray and not observation.dtype.hasobject:
        return observation.copy()  # as nearly always
    return deepcopy(observation)


def _replace(
    layer: Any,
    seen: Callable[[Any], Any],
    earned: Callable[[Any], Any] = lambda reward: reward,
    ended: Callable[[str, Any], Any] = lambda name, flag: flag,
    told: Callable[[Any], Any] = lambda info: info,
) -> None:
    """Let the methods of ``layer`` return replaced values, unless that was done before."""
    if not isinstance(vars(layer).get("step"), _Step):
        layer.reset, layer.step = (
            _Reset(layer.reset, seen),
            _Step(layer.step, seen, earned, ended, told),
        )


# Objects, and not functions: a deep copy of an environment has copies of its methods.


@dataclass(frozen=True)
class _Reset:
    """In the place of an environment's ``reset``."""

    reset: Callable[..., Any]
    seen: Callable[[Any], Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        observation, info = self.reset(*args, **kwargs)
        return self.seen(observation), info


@dataclass(frozen=True)
class _Step:
    """In the place of an environment's ``step``."""

    step: Callable[[Any], Any]
    seen: Callable[[Any], Any]
    earned: Callable[[Any], Any]
    ended: Callable[[str, Any], Any]
    told: Callable[[Any], Any]

    def __call__(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.step(action)
        return (
            self.seen(observation),
            self.earned(reward),
            self.ended("terminated", terminated),
            self.ended("truncated", truncated),
            self.told(info),
        )


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

"""What can be sent in version 2; arguments are checked where a program hands them over."""

from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from relaax.observations import NUMBERS, Observations, named
from relaax.steps import (
    FINAL,
    MAX_REWARD,
    REWARD_NOT_ALLOWED,
    Steps,
    are_rewards_allowed,
    is_reward_allowed,
    wants_action,
)

Array = npt.NDArray[Any]

_DOUBLE = np.dtype(np.float64)


def checked_reward(reward: float) -> float:
    """Return ``reward``; ValueError unless it is finite as a 32-bit float."""
    try:
        is_allowed = bool(is_reward_allowed(reward))
    except (TypeError, ValueError) as error:
        raise TypeError(f"the reward is {reward!r}, it must be a number") from error
    if not is_allowed:
        raise ValueError(
            f"the reward is {float(reward)}, {REWARD_NOT_ALLOWED}: at most "
            f"{MAX_REWARD:.2g} in magnitude can be sent"
        )
    return reward


def as_array(state: Any) -> Array | None:
    """Return a state as an array of numbers; None for text, mappings and ragged lists.

    An array keeps its type, and so does a single integer; other plain numbers become 64-bit floats.
    """
    if isinstance(state, np.ndarray):
        return state if state.dtype.kind in NUMBERS else None
    try:
        array = np.asarray(state)
    except ValueError:
        return None
    if array.dtype.kind not in NUMBERS:
        return None
    return array if isinstance(state, (np.generic, int)) else array.astype(np.float64)


def as_observations(state: Any) -> Observations | None:
    """Return a state as an array, or a dict as arrays by name; None for anything else.

    ValueError for names that cannot be sent.
    """
    if not isinstance(state, dict):
        return as_array(state)
    if not state:
        return None
    arrays: dict[str, Array] = {}
    for name, value in named(state).items():
        array = as_array(value)
        if array is None:
            return None
        arrays[name] = array
    return arrays


def checked_state(state: Any) -> Observations:
    """Return a state as an array, or as arrays by name.

    TypeError for what is no array of numbers, ValueError for numbers that are not finite and for
    names that cannot be sent.
    """
    if isinstance(state, dict):
        return {
            name: _checked_array(f"the state[{name!r}]", value)
            for name, value in named(state).items()
        }
    return _checked_array("the state", state)


def _checked_array(what: str, state: Any) -> Array:
    array = as_array(state)
    if array is None:
        raise TypeError(
            f"{what} is no array of numbers: {type(state).__name__}; RLX version 2 carries "
            "nothing else, Client(..., protocol=1) carries what JSON can hold"
        )
    _require_finite(what, array)
    return array


def checked_rewards(rewards: Any, count: int) -> npt.NDArray[np.float64]:
    """Return ``rewards`` as float64 [count]; ValueError for what cannot be sent."""
    if _are_doubles(rewards, count) and are_rewards_allowed(rewards):
        return rewards  # as nearly always
    try:
        array = np.asarray(rewards, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"rewards are {count} numbers: {error}") from error
    if array.shape != (count,):
        raise ValueError(f"rewards are {count} numbers, not an array of shape {array.shape}")
    if not are_rewards_allowed(array):
        (index, *_) = np.flatnonzero(~(np.abs(array) <= MAX_REWARD))
        raise ValueError(f"rewards[{index}] is {array[index]}, {REWARD_NOT_ALLOWED}")
    return array


def _are_doubles(rewards: Any, count: int) -> TypeGuard[npt.NDArray[np.float64]]:
    return (
        isinstance(rewards, np.ndarray) and rewards.shape == (count,) and rewards.dtype == _DOUBLE
    )


def checked_rows(what: str, rows: Any, count: int) -> Observations:
    """Return ``rows`` as an array [count, ...] of finite numbers, or such arrays by name.

    A dict has a name for each array; dicts and tuples in it are flattened. None means that
    there are no rows. ValueError for anything else.
    """
    if isinstance(rows, dict):
        return {
            name: _checked_rows(f"{what}[{name!r}]", part, count)
            for name, part in named(rows).items()
        }
    return _checked_rows(what, rows, count)


def _checked_rows(what: str, rows: Any, count: int) -> Array:
    array = as_array(() if rows is None else rows)
    if array is None:
        raise ValueError(f"{what} are no array of numbers: {type(rows).__name__}")
    if array.ndim == 0 or len(array) != count:
        raise ValueError(f"{what} are {count} rows, not an array of shape {array.shape}")
    _require_finite(what, array)
    return array


def checked_flags(what: str, flags: Any, count: int) -> npt.NDArray[np.bool_]:
    """Return ``flags`` as bool [count], all False for None; ValueError for anything else."""
    if flags is None:
        return np.zeros(count, np.bool_)
    array = np.asarray(flags, np.bool_)
    if array.shape != (count,):
        raise ValueError(f"{what} is {count} flags, not an array of shape {array.shape}")
    return array


def checked_steps(steps: Steps, environments: int) -> Steps:
    """Return ``steps`` as arrays; ValueError where their lengths or numbers do not fit."""
    numbers, flags = np.asarray(steps.environments), np.asarray(steps.flags, np.uint8)
    count = len(numbers)
    if count == 0 or flags.shape != (count,):
        raise ValueError(f"steps have an environment or more, and as many flags, not {steps}")
    if numbers.min() < 0 or numbers.max() >= environments or len(set(numbers.tolist())) != count:
        raise ValueError(f"environments are different numbers from 0 to {environments - 1}")
    acting, ended = int(wants_action(flags).sum()), int(np.count_nonzero(flags & FINAL))
    return Steps(
        numbers,
        flags,
        checked_rewards(steps.rewards, count),
        checked_rows("observations", steps.observations, acting),
        checked_rows("finals", steps.finals, ended),
    )


def _require_finite(what: str, array: Array) -> None:
    if array.dtype.kind == "f" and not np.logical_and.reduce(np.isfinite(array), axis=None):
        place = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(f"{what}{place or ''} is {array[tuple(place)]}, it must be finite")

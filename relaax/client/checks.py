"""Checks of all values that version 2 can carry, made where a program hands them over."""

import contextlib
import reprlib
from numbers import Number
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from relaax.observations import Observations, as_numbers, named, why_no_numbers
from relaax.steps import (
    EXECUTED,
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


def checked_reward(reward: Any) -> float:
    """Return ``reward`` as a number; ValueError unless it is finite as a 32-bit float."""
    number = single_number("the reward", reward)
    if not is_reward_allowed(number):
        raise ValueError(
            f"the reward is {number}, {REWARD_NOT_ALLOWED}: at most "
            f"{MAX_REWARD:.2g} in magnitude can be sent"
        )
    return number


def single_number(what: str, value: Any) -> float:
    """Return a number, or the only one in an array, of any type; TypeError for anything else."""
    if type(value) is float:
        return value  # as nearly always
    array = as_numbers(value)
    if array is not None and array.size == 1:
        return float(array.item())
    if isinstance(value, Number) and not isinstance(value, complex | np.complexfloating):
        with contextlib.suppress(OverflowError):
            return float(value)  # type: ignore[arg-type]  # a Fraction, a Decimal, a long integer
        return np.inf
    shape = "" if array is None else f", an array of shape {array.shape}"
    raise TypeError(f"{what} is {reprlib.repr(value)}{shape}, it must be a number")


def single_flag(what: str, value: Any) -> bool:
    """Return a flag, or the only one in an array; False for None, TypeError for anything else."""
    if type(value) is bool or value is None:
        return bool(value)  # as nearly always
    array = as_numbers(value)
    if array is None or array.size != 1:
        raise TypeError(f"{what} is {reprlib.repr(value)}, it must be true or false")
    return bool(array.item())


def as_array(state: Any) -> Array | None:
    """Return a state as an array of numbers; None if it is not numeric.

    Arrays and typed numbers keep their type, and so does a single integer; other plain numbers
    become 64-bit floats.
    """
    if type(state) is np.ndarray and state.dtype.kind in "fiu" and state.dtype.itemsize <= 8:
        return state  # as nearly always
    array = as_numbers(state)
    if array is None or isinstance(state, int) or _has_type(state):
        return array
    return array.astype(np.float64)


def _has_type(state: Any) -> bool:
    """Return whether the type of the numbers in ``state`` is the program's choice."""
    while isinstance(state, list | tuple):
        if not state:
            return False
        state = state[0]
    return hasattr(state, "dtype")


def as_observations(state: dict[Any, Any]) -> dict[str, Array] | None:
    """Return a dict as arrays by name; None if a value is not numeric.

    ValueError for names that cannot be sent.
    """
    arrays = {name: as_array(value) for name, value in named(state).items()} if state else {}
    found = {name: array for name, array in arrays.items() if array is not None}
    return found if state and len(found) == len(arrays) else None


#: As JSON, a list of so many numbers is smaller and faster than a compressed array.
_MAX_LISTED_VALUES = 64


def as_listed(state: Any) -> Any:
    """Return a state as version 1 sends it.

    A small vector becomes plain numbers, but not an array of bytes, which an algorithm may scale. A
    dict of numbers, lists and arrays is flattened. Anything else stays.
    """
    if isinstance(state, dict) and as_observations(state) is not None:
        return {name: as_listed(value) for name, value in named(state).items()}
    if isinstance(state, np.uint8):
        return np.asarray(state)
    is_vector = type(state) is np.ndarray and state.ndim <= 1 and state.dtype != np.uint8
    return state.tolist() if is_vector and state.size <= _MAX_LISTED_VALUES else state


def checked_state(state: Any) -> Observations:
    """Return a state as an array, or as arrays by name.

    TypeError if it is not numeric, ValueError for numbers that are not finite and for names that
    cannot be sent.
    """
    if isinstance(state, dict):
        return {
            name: _checked_array(f"the state[{name!r}]", value)
            for name, value in named(state).items()
        }
    return _checked_array("the state", state)


def required_numbers(what: str, value: Any) -> Array:
    """Return ``value`` as an array of numbers; TypeError for anything else."""
    array = as_numbers(value)
    if array is None:
        raise TypeError(no_numbers(what, value))
    return array


def no_numbers(what: str, value: Any) -> str:
    """Return in words that ``value`` is no array of numbers, and why."""
    return f"{what} is no array of numbers: {type(value).__name__}; {why_no_numbers(what, value)}"


def _checked_array(what: str, state: Any) -> Array:
    array = as_array(state)
    if array is None:
        raise TypeError(
            f"{no_numbers(what, state)}. In version 2 of the protocol {what} cannot be sent; "
            "Client(..., protocol=1) carries any JSON, to an algorithm of your own"
        )
    require_finite_array(what, array)
    return array


def checked_action(action: Any) -> Array:
    """Return an executed action as an array.

    TypeError if it is not numeric, ValueError for numbers that are not finite.
    """
    array = required_numbers("the executed action", action)
    require_finite_array("the executed action", array)
    return array


def checked_actions(actions: Any, count: int) -> Array:
    """Return executed actions as an array [count, ...]; TypeError or ValueError for others."""
    array = checked_action(actions)
    if array.ndim == 0 or len(array) != count:
        raise ValueError(
            f"executed actions are {count} rows, not an array of shape {list(array.shape)}"
        )
    return array


def checked_rewards(rewards: Any, count: int) -> npt.NDArray[np.float64]:
    """Return ``rewards`` as float64 [count]; ValueError if they cannot be sent."""
    array = as_rewards(rewards, count)
    if not are_rewards_allowed(array):
        (index, *_) = np.flatnonzero(~(np.abs(array) <= MAX_REWARD))
        raise ValueError(f"rewards[{index}] is {array[index]}, {REWARD_NOT_ALLOWED}")
    return array


def as_rewards(rewards: Any, count: int) -> npt.NDArray[np.float64]:
    """Return ``rewards``, one for each of ``count`` environments, as float64 [count]; ValueError.

    Each may be a number, or an array with one.
    """
    if _are_doubles(rewards, count):
        return rewards  # as nearly always
    if isinstance(rewards, np.ndarray) and rewards.dtype.hasobject:
        rewards = rewards.tolist()
    return _one_each("rewards", "rewards are {} numbers", rewards, count).astype(np.float64)


def _one_each(what: str, expected: str, values: Any, count: int) -> Array:
    """Return ``count`` values as an array [count]; each may be an array of one element."""
    array = as_numbers(values)
    if array is None:
        reason = why_no_numbers(what, values)
        raise ValueError(f"{expected.format(count)}: could not convert them: {reason}")
    if array.size != count or (count > 1 and len(array) != count):
        raise ValueError(f"{expected.format(count)}, not an array of shape {array.shape}")
    return array.reshape(count)


def _are_doubles(rewards: Any, count: int) -> TypeGuard[npt.NDArray[np.float64]]:
    return type(rewards) is np.ndarray and rewards.shape == (count,) and rewards.dtype == _DOUBLE


def checked_rows(what: str, rows: Any, count: int) -> Observations:
    """Return ``rows`` as an array [count, ...] of finite numbers, or as arrays by name.

    A dict has a name for each array; dicts and tuples in it are flattened. None means no rows.
    ValueError for anything else.
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
        kind = type(rows).__name__
        raise ValueError(f"{what} are no array of numbers: {kind}; {why_no_numbers(what, rows)}")
    if array.ndim == 0 or len(array) != count:
        raise ValueError(f"{what} are {count} rows, not an array of shape {array.shape}")
    require_finite_array(what, array)
    return array


def checked_flags(what: str, flags: Any, count: int) -> npt.NDArray[np.bool_]:
    """Return ``flags`` as bool [count], all False for None; ValueError for anything else.

    Each may be a flag, or an array with one.
    """
    if flags is None:
        return np.zeros(count, np.bool_)
    return _one_each(what, f"{what} is {{}} flags", flags, count).astype(np.bool_)


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
        checked_actions(steps.executed, int(np.count_nonzero(flags & EXECUTED))),
    )


def require_finite_array(what: str, array: Array) -> None:
    """Raise ValueError, which names the first, for numbers that are not finite."""
    if array.dtype.kind == "f" and not np.logical_and.reduce(np.isfinite(array), axis=None):
        place = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(f"{what}{place or ''} is {array[tuple(place)]}, it must be finite")

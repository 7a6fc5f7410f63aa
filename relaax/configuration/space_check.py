"""Checks the spaces that an algorithm's configuration gives, when a server starts.

Found to be wrong only when a client comes, a space would close that connection, and each other.
"""

import json
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relaax.algorithm_base import ConfigBase
from relaax.errors import ConfigurationError, did_you_mean
from relaax.observations import NUMBERS, named
from relaax.spaces import bounds_of, is_nested, members
from relaax.telemetry.throttled_log import in_words


def require_spaces(config: ConfigBase, directory: Path) -> None:
    """Raise ConfigurationError for a space that is malformed, or that ``config`` cannot make.

    ``directory`` is the algorithm's folder, which is named with the line that fails. What is no
    ``ConfigBase`` and has no spaces is left alone.
    """
    for name in ("observation_space", "action_space"):
        method = getattr(config, name, None)
        if method is None:
            continue
        try:
            space = method()
        except Exception as error:  # whatever an algorithm's own code raises
            raise ConfigurationError(
                f"algorithm {directory}: Config.{name} fails: {cause(error, directory)}"
            ) from error
        if space is not None:
            is_of_actions = name == "action_space"
            what = f"algorithm {directory}: Config.{name} returns {space!r}"
            _require_space(space, what, is_of_actions)


def _require_space(space: Any, what: str, is_of_actions: bool) -> None:
    reason = _mistake_in(space)
    if reason is None:
        reason = _mistake_in_actions(space) if is_of_actions else _mistake_in_names(space)
    if reason is None:
        try:
            json.dumps(space, allow_nan=False)
        except (TypeError, ValueError) as error:
            reason = f"it cannot be written as JSON: {error}"
    if reason is not None:
        raise ConfigurationError(f"{what}: {reason} (relaax.spaces describes spaces)")


def _mistake_in(space: Any) -> str | None:
    """Return what is wrong with a space; None if nothing is."""
    if not isinstance(space, Mapping):
        return 'a space must be a dict, such as {"type": "Discrete", "n": 2}, or None'
    kind = space.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        return f"unknown type {kind!r}; {did_you_mean(kind, _KINDS)}".replace("keys", "types")
    return _KINDS[kind](space)


def _mistake_in_actions(space: Mapping[str, Any]) -> str | None:
    """Return why an action cannot be of ``space``: it is sent as one array."""
    if space.get("start", 0) != 0:
        return "actions are counted from 0: without start, and converted by the client"
    if not is_nested(space):
        return None
    return (
        f"an action is one array, and no {space['type']}: give one Box or one MultiDiscrete "
        "with the numbers of all actions, which clients take apart"
    )


def _mistake_in_names(space: Mapping[str, Any]) -> str | None:
    """Return why the names of a Dict cannot be sent, or not be told apart."""
    if not is_nested(space):
        return None
    try:
        named(_names_in(space))
    except ValueError as error:
        return str(error)
    return None


def _names_in(space: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict with the names in a Dict or Tuple, and dicts for those inside of it."""
    return {name: _names_in(part) if is_nested(part) else None for name, part in members(space)}


def _mistake_in_box(space: Mapping[str, Any]) -> str | None:
    try:
        kind = np.dtype(space.get("dtype", "float32")).kind
    except (TypeError, ValueError):
        kind = ""
    if kind not in NUMBERS or not kind:
        return f"dtype must be a type of numbers such as 'float32', not {space['dtype']!r}"
    return _mistake_in_shape(space) or _mistake_in_bounds(space)


def _mistake_in_bounds(space: Mapping[str, Any]) -> str | None:
    try:
        low, high = bounds_of(dict(space))
    except ValueError as error:
        return str(error)
    return None if (low <= high).all() else "low must not lie above high"


def _mistake_in_discrete(space: Mapping[str, Any]) -> str | None:
    return None if _is_count(space.get("n")) else "n must be a positive integer"


def _mistake_in_shape(space: Mapping[str, Any]) -> str | None:
    return None if _are_counts(space.get("shape")) else "shape must be a list of positive integers"


def _mistake_in_nvec(space: Mapping[str, Any]) -> str | None:
    nvec = space.get("nvec")
    return None if nvec and _are_counts(nvec) else "nvec must be a list of positive integers"


def _mistake_in_dict(space: Mapping[str, Any]) -> str | None:
    inner = space.get("spaces")
    if not isinstance(inner, Mapping):
        return "spaces must be a dict of spaces by name"
    for name in inner:
        if not isinstance(name, str) or not name:
            return f"the name of a space is a text, and not empty: {name!r}"
    mistakes = ((name, _mistake_in(part)) for name, part in inner.items())
    return next((f"{name}: {mistake}" for name, mistake in mistakes if mistake), None)


def _mistake_in_tuple(space: Mapping[str, Any]) -> str | None:
    if not isinstance(space.get("spaces"), list):
        return "spaces must be a list of spaces"
    return _mistake_in_dict({"spaces": dict(members(space))})


_KINDS: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
    "Box": _mistake_in_box,
    "Discrete": _mistake_in_discrete,
    "MultiBinary": _mistake_in_shape,
    "MultiDiscrete": _mistake_in_nvec,
    "Dict": _mistake_in_dict,
    "Tuple": _mistake_in_tuple,
}


def _are_counts(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(_is_count(number) for number in numbers)


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0


def cause(error: Exception, directory: Path) -> str:
    """Return the error in one line, with the last line of the algorithm that led to it."""
    if isinstance(error, SyntaxError) and error.filename:  # no frame is in a file with a mistake
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).is_relative_to(directory)]
    place = f" ({inside[-1].filename}:{inside[-1].lineno})" if inside else ""
    return f"{in_words(error)}{place}"

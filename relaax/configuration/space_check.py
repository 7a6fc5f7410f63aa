"""Checks the spaces that an algorithm's configuration gives, when a server starts.

Found to be wrong only when a client comes, a space would close that connection, and each other.
"""

import json
import traceback
from collections.abc import Callable, Mapping
from functools import partial
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

    ``directory`` is the algorithm's folder, which is named with the line that fails. A
    configuration without spaces, which is no ``ConfigBase``, is left alone.
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
        if space is not None and (reason := _reason(space, name == "action_space")):
            raise ConfigurationError(
                f"algorithm {directory}: Config.{name} returns {space!r}: {reason} (relaax.spaces "
                "describes spaces)"
            )


def _reason(space: Any, is_of_actions: bool) -> str | None:
    """Return why a space cannot be used; None if it can be."""
    in_its_place = _mistake_in_actions if is_of_actions else _mistake_in_names
    if mistake := _mistake_in(space) or in_its_place(space):
        return mistake
    try:
        json.dumps(space, allow_nan=False)
    except (TypeError, ValueError) as error:
        return f"it cannot be written as JSON: {error}"
    return None


def _mistake_in(space: Any) -> str | None:
    """Return the mistake in a space; None without one."""
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
    if is_nested(space):
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
    if mistake := _mistake_in_counts("shape", space):
        return mistake
    try:
        low, high = bounds_of(dict(space))
    except ValueError as error:
        return str(error)
    return None if (low <= high).all() else "low must not lie above high"


def _mistake_in_members(kind: type, words: str, space: Mapping[str, Any]) -> str | None:
    if not isinstance(space.get("spaces"), kind):
        return f"spaces must be a {words}"
    for name, part in members(space):
        if not isinstance(name, str) or not name:
            return f"the name of a space is a text, and not empty: {name!r}"
        if mistake := _mistake_in(part):
            return f"{name}: {mistake}"
    return None


def _mistake_in_counts(key: str, space: Mapping[str, Any], least: int = 0) -> str | None:
    counts = space.get(key)
    if isinstance(counts, list) and len(counts) >= least and all(map(_is_count, counts)):
        return None
    return f"{key} must be a list of positive integers"


def _mistake_in_discrete(space: Mapping[str, Any]) -> str | None:
    return None if _is_count(space.get("n")) else "n must be a positive integer"


_KINDS: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
    "Box": _mistake_in_box,
    "Discrete": _mistake_in_discrete,
    "MultiBinary": partial(_mistake_in_counts, "shape"),
    "MultiDiscrete": partial(_mistake_in_counts, "nvec", least=1),
    "Dict": partial(_mistake_in_members, Mapping, "dict of spaces by name"),
    "Tuple": partial(_mistake_in_members, list, "list of spaces"),
}


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

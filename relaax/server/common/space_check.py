"""Checks the spaces that an algorithm's configuration gives, when a server starts.

Found to be wrong only when a client comes, a space would close that connection, and each other.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from relaax.algorithm_base import ConfigBase
from relaax.errors import ConfigurationError
from relaax.hints import did_you_mean
from relaax.server.common.algorithm_errors import cause


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
            _require_space(space, f"algorithm {directory}: Config.{name} returns {space!r}")


def _require_space(space: Any, what: str) -> None:
    reason = _mistake_in(space)
    if reason is None:
        try:
            json.dumps(space)
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


def _mistake_in_discrete(space: Mapping[str, Any]) -> str | None:
    return None if _is_count(space.get("n")) else "n must be a positive integer"


def _mistake_in_shape(space: Mapping[str, Any]) -> str | None:
    return None if _are_counts(space.get("shape")) else "shape must be a list of positive integers"


def _mistake_in_nvec(space: Mapping[str, Any]) -> str | None:
    return None if _are_counts(space.get("nvec")) else "nvec must be a list of positive integers"


def _mistake_in_dict(space: Mapping[str, Any]) -> str | None:
    inner = space.get("spaces")
    if not isinstance(inner, Mapping):
        return "spaces must be a dict of spaces by name"
    mistakes = ((name, _mistake_in(part)) for name, part in inner.items())
    return next((f"{name}: {mistake}" for name, mistake in mistakes if mistake), None)


def _mistake_in_tuple(space: Mapping[str, Any]) -> str | None:
    inner = space.get("spaces")
    if not isinstance(inner, list):
        return "spaces must be a list of spaces"
    return _mistake_in_dict({"spaces": dict(enumerate(inner))})


_KINDS: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
    "Box": _mistake_in_shape,
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

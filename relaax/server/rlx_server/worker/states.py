"""States of several requests: which are of one kind, and what they are in words."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.observations import Observations, joined, kind_of, mapped
from relaax.steps import States, Steps, number_of

NO_STATES: npt.NDArray[Any] = np.zeros(0, np.float32)


def finals_of_truncated(steps: Steps) -> States:
    """Return the final states without those of terminated episodes, after which nothing follows."""
    if number_of(steps.finals) == 0:
        return NO_STATES
    is_truncated = steps.is_truncated[steps.has_final]
    if isinstance(steps.finals, np.ndarray | dict):
        finals: Observations = mapped(lambda array: array[is_truncated], steps.finals)
        return finals
    return [final for final, wanted in zip(steps.finals, is_truncated, strict=True) if wanted]


def are_of_one_kind(parts: Sequence[States]) -> bool:
    """Return whether ``parts`` are arrays, or arrays by name, that can be joined."""
    first = parts[0]
    if not isinstance(first, np.ndarray | dict):
        return False
    kind = kind_of(first)
    return all(type(part) is type(first) and kind_of(part) == kind for part in parts)


def together(parts: Sequence[Any]) -> Observations:
    """Return states of one kind, one after another."""
    return joined(parts)


def kinds(states: Observations) -> str:
    """Return types of numbers and shapes, for people."""
    kinds = mapped(lambda array: f"{array.dtype}{list(array.shape[1:])}", states)
    return named_kinds(kinds)


def named_kinds(kinds: Any) -> str:
    """Return a type of numbers, or types by name, for people."""
    if not isinstance(kinds, dict):
        return str(kinds)
    return ", ".join(f"{name!r}: {kind}" for name, kind in kinds.items())

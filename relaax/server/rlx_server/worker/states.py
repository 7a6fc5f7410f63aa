"""States of several requests: which are of one kind, and what they are in words."""

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from relaax.observations import Observations, kind_of, mapped
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


def are_of_one_kind(parts: Sequence[States]) -> TypeGuard[Sequence[Observations]]:
    """Return whether ``parts`` are arrays, or arrays by name, that can be joined."""
    kinds_of = [kind_of(part) for part in parts if isinstance(part, np.ndarray | dict)]
    return len(kinds_of) == len(parts) and all(kind == kinds_of[0] for kind in kinds_of)


def kinds(states: Observations) -> str:
    """Return types of numbers and shapes, for people."""
    return named_kinds(mapped(lambda array: f"{array.dtype}{list(array.shape[1:])}", states))


def named_kinds(found: Any) -> str:
    """Return a type of numbers, or types by name, for people."""
    if not isinstance(found, dict):
        return str(found)
    return ", ".join(f"{name!r}: {kind}" for name, kind in found.items())

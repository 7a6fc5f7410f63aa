"""The interface of optimisers, and the clipping that any of them may have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector

#: The state of an optimiser, by the names of its arrays in checkpoints.
Slots = Mapping[str, npt.NDArray[Any]]


def clip_by_global_norm(gradient: FloatVector, limit: float | None) -> tuple[FloatVector, float]:
    """Return the gradient [size], scaled down to norm ``limit`` where it is longer, and its norm.

    Pascanu et al. 2013 (https://arxiv.org/abs/1211.5063), algorithm 1. The norm is the one before;
    it is not finite where an entry is not.
    """
    with np.errstate(over="ignore"):
        norm = float(np.sqrt(np.dot(gradient, gradient)))
    if not np.isfinite(norm):  # the squares of huge entries have no place in float32
        norm = float(np.linalg.norm(gradient.astype(np.float64)))
    if limit is None or norm <= limit:
        return gradient, norm
    return gradient * np.float32(limit / norm), norm


class Optimizer(Protocol):
    """Moves a flat vector, and keeps the state for its next step."""

    def slots(self) -> Slots:
        """Return its state: vectors float32 [size], and counts int64 [1].

        The arrays are its own: a restored training writes into them. Each name is the optimiser's,
        a slash and the slot's: ``adam/mean``. So a checkpoint names its optimiser.
        """

    def part(self, begin: int, end: int, size: int) -> "Optimizer":
        """Return a new optimiser of the same kind, for the entries [begin, end).

        ``size`` is the whole vector's. ValueError for a part that cannot be moved alone.
        """

    def apply(self, parameters: FloatVector, gradient: FloatVector, learning_rate: float) -> None:
        """Take one step down ``gradient`` [size], changing ``parameters`` [size] in place."""


@dataclass(frozen=True)
class Part:
    """Consecutive entries of the vector, with an optimiser and a learning rate of their own."""

    size: int
    optimizer: Optimizer
    learning_rate: float


class OptimizerOfParts:
    """Moves each part by its own optimiser; slots are named ``adam/PART/mean``.

    ``apply`` multiplies the learning rate of each part by its own.
    """

    def __init__(self, parts: Mapping[str, Part]) -> None:
        self._parts = dict(parts)

    def slots(self) -> Slots:
        """See Optimizer."""
        slots = {}
        for part, of_part in self._parts.items():
            for name, slot in of_part.optimizer.slots().items():
                kind, _, rest = name.partition("/")
                slots[f"{kind}/{part}/{rest}"] = slot
        return slots

    def part(self, begin: int, end: int, size: int) -> "OptimizerOfParts":
        """See Optimizer."""
        parts = {}
        for (name, part), place in zip(self._parts.items(), self._places(), strict=True):
            first, last = max(begin - place.start, 0), min(end - place.start, part.size)
            if first < last:
                optimizer = part.optimizer.part(first, last, part.size)
                parts[name] = replace(part, size=last - first, optimizer=optimizer)
        return OptimizerOfParts(parts)

    def apply(self, parameters: FloatVector, gradient: FloatVector, learning_rate: float) -> None:
        """See Optimizer."""
        places = self._places()
        for part, place in zip(self._parts.values(), places, strict=True):
            rate = part.learning_rate * learning_rate
            part.optimizer.apply(parameters[place], gradient[place], rate)

    def _places(self) -> Sequence[slice]:
        places, begin = [], 0
        for part in self._parts.values():
            places.append(slice(begin, begin + part.size))
            begin += part.size
        return places

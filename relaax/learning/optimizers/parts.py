"""Several optimisers on parts of one flat vector."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from relaax.algorithm_base import FloatVector
from relaax.learning.optimizers.optimizer import Optimizer, Slots


@dataclass(frozen=True)
class Part:
    """Consecutive entries of the vector, and what moves them at a rate of their own."""

    size: int
    optimizer: Optimizer
    learning_rate: float


class OptimizerOfParts:
    """Moves each part by its own optimiser; slots are named ``adam/PART/mean``.

    The learning rate that ``apply`` is given multiplies that of every part.
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

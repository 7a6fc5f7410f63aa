"""The parameter server's end of a filter."""

from collections.abc import Sequence

from relaax.algorithm_base import FloatVector
from relaax.learning.filters.statistics import length_of, merge
from relaax.learning.optimizers.optimizer import Optimizer, Slots


class MergingOptimizer:
    """An optimiser of parameters whose tail is statistics: these are merged, not optimised.

    The tail of a "gradient" is the statistics of what a worker has seen since its last one.
    ``widths`` are those of the workers' filters, in their order; the rest of a vector, its first
    part, is left to ``optimizer``.
    """

    def __init__(self, optimizer: Optimizer, widths: Sequence[int]) -> None:
        self._optimizer = optimizer
        self._widths = widths
        self._lengths = [length_of(width) for width in widths]

    def slots(self) -> Slots:
        """Return the slots of the optimiser."""
        return self._optimizer.slots()

    def part(self, begin: int, end: int, size: int) -> Optimizer:
        """See Optimizer: the statistics stay together, in the last part."""
        parameters = size - sum(self._lengths)
        if end <= parameters:
            return self._optimizer.part(begin, end, parameters)
        if begin > parameters or end < size:
            raise ValueError("the statistics of filters cannot be divided")
        return MergingOptimizer(self._optimizer.part(begin, parameters, parameters), self._widths)

    def apply(self, parameters: FloatVector, gradient: FloatVector, learning_rate: float) -> None:
        """Take one step with the first part of both vectors, and merge the tails, in place."""
        begin = len(parameters) - sum(self._lengths)
        self._optimizer.apply(parameters[:begin], gradient[:begin], learning_rate)
        for length in self._lengths:
            end = begin + length
            merge(parameters[begin:end], gradient[begin:end])
            begin = end

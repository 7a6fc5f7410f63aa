"""Statistics travel with gradients and values."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from relaax.algorithm_base import FloatVector, GradientSink, Values, VariableSource, Version
from relaax.learning.filters.z_filter import ZFilter


class ParameterSource(VariableSource, GradientSink, Protocol):
    """Where values come from and gradients go to."""


class FilteredSource:
    """A ``VariableSource`` for the network's own part of a longer vector.

    The tail of each vector is the statistics of ``filters``, in their order, which are put to use.
    """

    def __init__(self, source: VariableSource, filters: Sequence[ZFilter]) -> None:
        self._source = source
        self._filters = filters
        self._tail = sum(each.length for each in filters)

    def get(self, known: Version | None = None) -> Values:
        """Return the newest values of the network."""
        return self._split(self._source.get(known))

    def _split(self, values: Values) -> Values:
        """Put the statistics to use, and return the values without them."""
        vector = values.vector
        if vector is None or not self._tail:
            return values
        begin = len(vector) - self._tail
        own = vector[:begin]
        for each in self._filters:
            each.use(vector[begin : begin + each.length])
            begin += each.length
        return replace(values, vector=own)


class FilteredBridge(FilteredSource):
    """A ``FilteredSource`` that is a ``GradientSink``, too.

    What the filters have gathered is sent with a gradient, and is lost with it.
    """

    def __init__(self, bridge: ParameterSource, filters: Sequence[ZFilter]) -> None:
        super().__init__(bridge, filters)
        self._bridge = bridge

    def apply(self, gradient: FloatVector, steps: int, computed_with: Version | None) -> Values:
        """Apply a gradient of the network, and send what the filters have gathered with it."""
        whole = np.concatenate([gradient, *(each.take() for each in self._filters)])
        return self._split(self._bridge.apply(whole, steps, computed_with))

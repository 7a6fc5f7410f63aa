"""Which filters an algorithm has."""

from collections.abc import Mapping, Sequence
from typing import Any

from relaax.algorithm_base import FloatVector, VariableSource
from relaax.learning.filters.filtered_bridge import (
    FilteredBridge,
    FilteredSource,
    ParameterSource,
)
from relaax.learning.filters.merging import MergingOptimizer
from relaax.learning.filters.statistics import initial_statistics
from relaax.learning.filters.z_filter import Scale, ZFilter
from relaax.learning.optimizers import Optimizer


class Filters:
    """The filters of one worker, or what a parameter server knows of them.

    ``states``: how many numbers each filtered observation has, by name; ``UNNAMED`` for the only
    one. With ``rewards`` these are divided by their root mean square. With ``gathers`` false they
    filter alone: what they see is no part of any statistics.
    """

    def __init__(
        self, states: Mapping[str, int] | None = None, rewards: bool = False, gathers: bool = True
    ) -> None:
        #: By the observation's name.
        self.states = {
            name: ZFilter(width, gathers=gathers) for name, width in sorted((states or {}).items())
        }
        self.rewards = ZFilter(1, subtracts_mean=False, gathers=gathers) if rewards else None
        self._all = [*self.states.values(), *([self.rewards] if self.rewards else [])]

    @property
    def scales(self) -> Sequence[Scale]:
        """What each of them filters by."""
        return [each.scale for each in self._all]

    def use(self, scales: Sequence[Scale]) -> None:
        """Filter by ``scales`` from now on."""
        for each, scale in zip(self._all, scales, strict=True):
            each.scale = scale

    def separated(self, vector: FloatVector) -> tuple[FloatVector, Sequence[Scale]]:
        """Return the network's own part of a vector, and what its tail filters by."""
        begin = len(vector) - sum(each.length for each in self._all)
        own, scales = vector[:begin], []
        for each in self._all:
            scales.append(each.scale_of(vector[begin : begin + each.length]))
            begin += each.length
        return own, scales

    def still(self) -> "Filters":
        """Return filters of the same numbers, by the same scales, that gather nothing."""
        widths = {name: each.width for name, each in self.states.items()}
        still = Filters(widths, self.rewards is not None, gathers=False)
        still.use(self.scales)
        return still

    def bridged(self, bridge: ParameterSource) -> ParameterSource:
        """Return ``bridge`` as the network sees it, without the statistics behind its vector."""
        return FilteredBridge(bridge, self._all) if self._all else bridge

    def sourced(self, source: VariableSource) -> VariableSource:
        """Return ``source`` as the network sees it, where no gradients are sent."""
        return FilteredSource(source, self._all) if self._all else source

    def optimizer(self, optimizer: Optimizer) -> Optimizer:
        """Return what updates whole vectors: ``optimizer`` their parameters, merging the rest."""
        widths = [each.width for each in self._all]
        return MergingOptimizer(optimizer, widths) if widths else optimizer

    def initial(self) -> list[FloatVector]:
        """Return the statistics that a training begins with."""
        return [initial_statistics(each.width) for each in self._all]

    def fingerprint(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on, as JSON values."""
        found: dict[str, Any] = {}
        if self.states:
            found["filtered_states"] = {name: each.width for name, each in self.states.items()}
        if self.rewards is not None:
            found["filtered_rewards"] = True
        return found

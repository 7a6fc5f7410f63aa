"""The filters of an algorithm: settings, and where their statistics are merged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from relaax.algorithm_base import (
    DEFAULT,
    FloatVector,
    Gradient,
    Parameters,
    Section,
    Statistics,
    Update,
    Values,
    Version,
)
from relaax.learning.filters.statistics import initial_statistics, merge
from relaax.learning.filters.z_filter import Scale, ZFilter
from relaax.observations import UNNAMED, Observations, Shapes


class FilterSettings(Section):
    """Which filters an algorithm has; any algorithm's settings may have these keys."""

    #: Give states mean 0 and standard deviation 1; images stay as they are.
    filter_states: bool = True
    #: Divide rewards by their root mean square.
    filter_rewards: bool = False

    def filters_of(
        self, inputs: Shapes, others: Mapping[str, int] = MappingProxyType({})
    ) -> "Filters":
        """Return new filters of states of these shapes but images, of rewards, and ``others``."""
        states = widths_of(inputs) if self.filter_states else None
        return Filters(states, self.filter_rewards, others=others)


def widths_of(shapes: Shapes) -> dict[str, int]:
    """Return how long each vector is, by name; a number is a vector of one."""
    named = shapes if isinstance(shapes, Mapping) else {UNNAMED: shapes}
    return {name: prod(shape) for name, shape in named.items() if len(shape) <= 1}


class FilteredParameters:
    """``Parameters`` of the network's own part of a longer vector.

    The tail of each vector is the statistics of ``filters``, which are put to use. What the filters
    have gathered is sent with a gradient, and is lost with it.
    """

    def __init__(self, parameters: Parameters, filters: "Filters") -> None:
        self._parameters = parameters
        self._filters = filters

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the newest values of the network."""
        return self._filters.split(self._parameters.pull(known, policy))

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Apply a gradient of the network, and send what the filters have gathered with it."""
        if not isinstance(update, Gradient):
            raise ValueError("values are published as a whole, with the statistics of filters")
        filters = self._filters
        values = self._parameters.push(replace(update, statistics=filters.taken()), policy)
        return filters.split(values)


class Filters:
    """The filters of one worker, or the parameter server's record of them.

    ``states``: how many numbers each filtered observation has, by name; ``UNNAMED`` for the only
    one. With ``rewards`` these are divided by their root mean square. With ``gathers`` false they
    filter alone: what they see is no part of any statistics. ``others``: how many numbers there are
    of each kind that a learner filters for itself, by name.
    """

    def __init__(
        self,
        states: Mapping[str, int] | None = None,
        rewards: bool = False,
        gathers: bool = True,
        others: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        #: By the observation's name.
        self.states = {
            name: ZFilter(width, gathers=gathers) for name, width in sorted((states or {}).items())
        }
        self.rewards = ZFilter(1, subtracts_mean=False, gathers=gathers) if rewards else None
        #: By name; nothing but the learner gathers for these.
        self.others = {
            name: ZFilter(width, gathers=gathers) for name, width in sorted(others.items())
        }
        rewarding = [self.rewards] if self.rewards else []
        self._all = [*self.states.values(), *rewarding, *self.others.values()]

    @property
    def scales(self) -> Sequence[Scale]:
        """The scale of each of them."""
        return [each.scale for each in self._all]

    def use(self, scales: Sequence[Scale]) -> None:
        """Filter by ``scales`` from now on."""
        for each, scale in zip(self._all, scales, strict=True):
            each.scale = scale

    def separated(self, vector: FloatVector) -> tuple[FloatVector, Sequence[Scale]]:
        """Return the network's own part of a vector, and the scales in its tail."""
        begin = len(vector) - self.length
        own, scales = vector[:begin], []
        for each in self._all:
            scales.append(each.scale_of(vector[begin : begin + each.length]))
            begin += each.length
        return own, scales

    def split(self, values: Values) -> Values:
        """Put the statistics behind values to use, and return the values without them."""
        if values.vector is None or not self._all:
            return values
        own, scales = self.separated(values.vector)
        self.use(scales)
        return replace(values, vector=own)

    def taken(self) -> list[Statistics]:
        """Return the statistics gathered since the last time, to be sent with a gradient."""
        return [Statistics(np.concatenate([e.take() for e in self._all]))] if self._all else []

    def gather(self, observations: Observations) -> None:
        """Take note of observations [B, ...]; of stacked states the newest count."""
        for name, each in self.states.items():
            part = observations[name] if isinstance(observations, dict) else observations
            each.gather(part[:, -each.width :])

    def add(self, statistics: FloatVector) -> None:
        """Take note of ``statistics`` [length] that filters of another process have gathered."""
        begin = 0
        for each in self._all:
            each.add(statistics[begin : begin + each.length])
            begin += each.length

    def settle(self, statistics: FloatVector) -> None:
        """Merge the gathered ones into ``statistics``, in place, and filter by them from now on.

        They are those of all filters, one behind another: of one process, which shares them with no
        other.
        """
        gathered = np.concatenate([each.take() for each in self._all])
        self.merge(statistics, gathered)
        self.use(self.separated(statistics)[1])

    @property
    def length(self) -> int:
        """How long the statistics of all of them are, one behind another."""
        return sum(each.length for each in self._all)

    def merge(self, statistics: FloatVector, added: FloatVector) -> None:
        """Merge ``added`` [length] into ``statistics`` [length], in place."""
        begin = 0
        for each in self._all:
            part = slice(begin, begin + each.length)
            merge(statistics[part], added[part])
            begin = part.stop

    def still(self) -> "Filters":
        """Return filters of the same numbers, by the same scales, that gather nothing."""
        still = Filters(_widths(self.states), self.rewards is not None, False, _widths(self.others))
        still.use(self.scales)
        return still

    def bridged(self, parameters: Parameters) -> Parameters:
        """Return ``parameters`` as the network sees them, without the statistics behind them."""
        return FilteredParameters(parameters, self) if self._all else parameters

    def initial(self) -> list[FloatVector]:
        """Return the statistics that a training begins with."""
        return [initial_statistics(each.width) for each in self._all]

    def fingerprint(self) -> dict[str, Any]:
        """Return the properties that a checkpoint must agree on, as JSON values."""
        found: dict[str, Any] = {}
        if self.states:
            found["filtered_states"] = _widths(self.states)
        if self.rewards is not None:
            found["filtered_rewards"] = True
        if self.others:
            found["other_statistics"] = _widths(self.others)
        if self._all:
            found["statistics_of_filters"] = "means and deviations of 48 bits"
        return found


def _widths(filters: Mapping[str, ZFilter]) -> dict[str, int]:
    return {name: each.width for name, each in filters.items()}

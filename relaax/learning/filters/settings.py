"""The keys that ask for filters in the YAML file."""

from collections.abc import Mapping
from math import prod

from relaax.algorithm_base import Section
from relaax.learning.filters.filters import Filters
from relaax.observations import UNNAMED, Shapes


class FilterSettings(Section):
    """Which filters an algorithm has; any algorithm's settings may have these keys."""

    #: Give states mean 0 and standard deviation 1; images stay as they are.
    filter_states: bool = True
    #: Divide rewards by their root mean square.
    filter_rewards: bool = False

    def filters_of(self, inputs: Shapes) -> Filters:
        """Return new filters of states of these shapes but images, and of rewards."""
        return Filters(_widths(inputs) if self.filter_states else None, self.filter_rewards)


def _widths(shapes: Shapes) -> dict[str, int]:
    """Return how long each vector is, by name; a number is a vector of one."""
    named = shapes if isinstance(shapes, Mapping) else {UNNAMED: shapes}
    return {name: prod(shape) for name, shape in named.items() if len(shape) <= 1}

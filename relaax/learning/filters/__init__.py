"""Z-filters: states with mean 0 and standard deviation 1, and perhaps rewards of the size of 1.

``filters``          the filters of an algorithm: settings, and where their statistics are merged
``filtering_model``  chooses actions by filtered states, and leaves the states as they are
``statistics``       counts, means and deviations in a flat vector, and how two are merged
``z_filter``         a worker's end: filters, and gathers what has come since the last update

What workers gather are updates of their own, sent in the calls of gradients. The merged statistics
lie behind the parameters, in values and in every checkpoint, so that all workers filter alike.
"""

from relaax.learning.filters.filtering_model import FilteringModel, scaled_states
from relaax.learning.filters.filters import FilteredParameters, Filters, FilterSettings, widths_of
from relaax.learning.filters.statistics import initial_statistics
from relaax.learning.filters.z_filter import Scale, ZFilter

__all__ = [
    "FilterSettings", "FilteredParameters", "FilteringModel", "Filters",
    "Scale", "ZFilter", "initial_statistics", "scaled_states",
    "widths_of"
]  # fmt: skip

"""Chooses actions by filtered states, and leaves the states as they are for what is stored."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.filters.z_filter import ZFilter
from relaax.learning.model import Choice, PolicyModel
from relaax.learning.networks.manifest import NetworkParameters
from relaax.observations import UNNAMED, Observations

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]


class FilteringModel:
    """A ``PolicyModel`` that filters observations before another one sees them.

    A learner that gathers statistics itself needs the states as they were: those that are recorded
    are not filtered.
    """

    def __init__(self, model: PolicyModel, filters: Mapping[str, ZFilter]) -> None:
        self._model = model
        self._filters = filters

    def batch_size(self, count: int) -> int:
        """Return what the other model returns."""
        return self._model.batch_size(count)

    def choose(
        self,
        parameters: NetworkParameters,
        observations: Observations,
        recurrent_state: FloatArray,
        noise: FloatArray,
    ) -> Choice:
        """Choose actions for ``observations`` [B, ...]."""
        scaled = scaled_states(self._filters, observations)
        return self._model.choose(parameters, scaled, recurrent_state, noise)


def scaled_states(filters: Mapping[str, ZFilter], observations: Observations) -> Observations:
    """Return observations [..., D] with those that have a filter scaled; nothing is gathered.

    Of stacked states each is scaled by itself.
    """
    if not isinstance(observations, dict):
        alone = filters.get(UNNAMED)
        return observations if alone is None else _scaled(alone, observations)
    return {
        name: _scaled(filters[name], part) if name in filters else part
        for name, part in observations.items()
    }


def _scaled(z_filter: ZFilter, part: Array) -> Array:
    return z_filter.scaled(part.reshape(-1, z_filter.width)).reshape(part.shape)

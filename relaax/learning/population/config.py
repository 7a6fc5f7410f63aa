"""The configuration of a method of populations, as the servers want it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from relaax.algorithm_base import FloatVector
from relaax.learning.distributions import ActionValues, Deterministic
from relaax.learning.filters import Filters
from relaax.learning.method_config import MethodConfig
from relaax.learning.networks import (
    POLICY,
    Dense,
    Head,
    default_network,
    initial_parameters,
    read_network,
)
from relaax.learning.population.imprint import Imprint
from relaax.learning.population.settings import PopulationSettings
from relaax.learning.rollouts.labels import POLICY_NAME, POLICY_STAMP
from relaax.learning.shapes import stacked_shape
from relaax.spaces import Space, discrete

#: The keys that workers apply: they must be the learner's.
KEYS_OF_WORKERS = (
    "candidates", "longest_episode", "hidden_layers", "network", "history_len", "continuous",
    "action_size", "action_low", "action_high", "action_scale", "filter_states", "clip_rewards",
    "reward_scale",
)  # fmt: skip


class PopulationConfig(MethodConfig):
    """The typed settings, checked once, and the policy that they describe: it draws nothing.

    Derived classes set ``algorithm``, its name in checkpoints. Episodes carry the name of the
    policy that acted, and the stamp of its generation.
    """

    algorithm: str
    settings: PopulationSettings
    extras = (POLICY_NAME, POLICY_STAMP)

    def __init__(self, config: Mapping[str, Any], settings: PopulationSettings) -> None:
        super().__init__(config)
        self.settings = settings
        self.actions: ActionValues | Deterministic
        if settings.continuous:
            self.actions, self.action_units = Deterministic(settings.action_shape), settings.units
        else:
            self.actions = ActionValues(int(settings.action_shape[0]))
        shape = stacked_shape(settings.inputs, settings.history_len)
        heads = (Head(POLICY, self.actions.outputs),)
        if settings.network is None:
            layers = tuple(Dense(units, "tanh") for units in settings.hidden_layers)
            self.network = default_network(shape, layers, heads)
        else:
            self.network = read_network(settings.network, shape, heads)

    def action_space(self) -> Space:
        """Return the space of actions."""
        if self.action_units is not None:
            return self.action_units.space
        return discrete(int(self.settings.action_shape[0]))

    def filters(self) -> Filters:
        """Return new filters of the states but images, if asked for."""
        return self.settings.filters_of(self.settings.inputs)

    def initial(self) -> FloatVector:
        """Return the network's parameters at first, float32 [size]."""
        settings, manifest = self.settings, self.network.manifest
        if settings.initialization == "zeros":
            return np.zeros(manifest.size, np.float32)
        return initial_parameters(manifest, settings.initialization, settings.seed)

    def own_numbers(self) -> tuple[float, ...]:
        """Return the numbers at first that candidates are made with; the learner publishes them."""
        return ()

    def imprint(self) -> Imprint:
        """Return the numbers behind each policy's parameters."""
        size, tail = self.network.manifest.size, self.filters().length
        return Imprint(size, self._keys_of_workers(), self.own_numbers(), tail)

    def fingerprint(self) -> dict[str, Any]:
        """Return the properties that a checkpoint must agree on, as JSON values."""
        specs = self.network.manifest.specs
        return {
            "algorithm": self.algorithm,
            "parameters": [[spec.name, list(spec.shape)] for spec in specs],
            "numbers_behind": len(self.imprint().first_numbers()),
            # Workers refuse a restored population of other keys.
            **self._keys_of_workers(),
            **self.units(),
            **self.filters().fingerprint(),
        }

    def _keys_of_workers(self) -> dict[str, Any]:
        return self.settings.model_dump(mode="json", include=set(KEYS_OF_WORKERS))

"""The configuration of an off-policy algorithm, as the servers want it."""

from abc import abstractmethod
from typing import Any

from relaax.algorithm_base import FloatVector
from relaax.learning.filters import Filters, widths_of
from relaax.learning.method_config import MethodConfig
from relaax.learning.networks import (
    POLICY,
    Dense,
    Head,
    Network,
    default_network,
    initial_parameters,
    read_network,
)
from relaax.learning.off_policy.settings import ActionValueSettings, OffPolicySettings
from relaax.learning.shapes import stacked_shape

#: The name of the parameters that actors act with, the first of all that is learnt.
POLICY_VARIABLE = "policy"

#: The head of the states' values, in a dueling network.
VALUE = "value"


class OffPolicyConfig(MethodConfig):
    """The typed settings, checked once, and their parts; the policy's parameters are published.

    Derived classes set these, and those of ``MethodConfig``.
    """

    #: Its name in checkpoints.
    algorithm: str
    settings: OffPolicySettings

    def filters(self) -> Filters:
        """Return new filters of the states but images, if asked for."""
        settings = self.settings
        return Filters(widths_of(settings.inputs) if settings.filter_states else None)

    @property
    @abstractmethod
    def learning_rates(self) -> dict[str, float]:
        """The learning rates of all variables, by name; ``POLICY_VARIABLE`` is the first."""

    def initial(self, seed: int | None) -> dict[str, FloatVector]:
        """Return all that is learnt as it is at first, float32 [size] by the same names."""
        return {POLICY_VARIABLE: initial_parameters(self.network.manifest, "uniform", seed)}

    @property
    def networks(self) -> tuple[Network, ...]:
        """All networks that are learnt."""
        return (self.network,)

    def fingerprint(self) -> dict[str, Any]:
        """Return the properties that a checkpoint must agree on, as JSON values."""
        specs = [spec for network in self.networks for spec in network.manifest.specs]
        return {
            "algorithm": self.algorithm,
            "parameters": [[spec.name, list(spec.shape)] for spec in specs],
            **({"sees": self.network.sights} if self.network.sights else {}),
            **self.units(),
            **self.filters().fingerprint(),
        }


def network_of(settings: OffPolicySettings, heads: tuple[Head, ...]) -> Network:
    """Return the network that a configuration describes; ValueError for a recurrent one."""
    shape = stacked_shape(settings.inputs, settings.history_len)
    if settings.network is None:
        layers = tuple(Dense(units) for units in settings.hidden_layers)
        return default_network(shape, layers, heads)
    network = read_network(settings.network, shape, heads)
    if network.lstm_size:
        raise ValueError("network: single transitions are learnt from, which lstm cannot be")
    return network


def heads_of(settings: ActionValueSettings, atoms: int = 1) -> tuple[Head, ...]:
    """Return the head of actions' values and, in a dueling network, the head of states' value."""
    layers = tuple(Dense(units) for units in settings.stream_layers)
    of_actions = Head(POLICY, settings.action_size * atoms, layers=layers)
    if not settings.dueling:
        return (of_actions,)
    return (of_actions, Head(VALUE, atoms, layers=layers))

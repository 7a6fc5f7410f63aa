"""The configuration of an off-policy algorithm, as the servers want it."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from relaax.algorithm_base import ConfigBase, FloatVector
from relaax.learning.action_mask import space_with_mask
from relaax.learning.action_units import ActionUnits
from relaax.learning.described_policy import DescribedPolicy
from relaax.learning.distributions import ActionHead
from relaax.learning.filters import Filters, widths_of
from relaax.learning.networks import (
    Dense,
    Head,
    Network,
    default_network,
    initial_parameters,
    read_network,
)
from relaax.learning.off_policy.settings import OffPolicySettings
from relaax.learning.rollouts import Columns
from relaax.learning.shapes import stacked_shape
from relaax.spaces import Space

#: The name of what actors act with, the first of what is learnt.
POLICY_VARIABLE = "policy"


class OffPolicyConfig(ConfigBase):
    """The typed settings, checked once, and what they make. Derived classes set all of these."""

    #: Its name in checkpoints.
    algorithm: str
    settings: OffPolicySettings
    #: What actors choose with; its parameters are published.
    network: Network
    #: The heads of ``network`` that actions are made of.
    heads: tuple[str, ...]
    #: How actions are made of what these put out.
    actions: ActionHead
    #: Makes actions of the plant of these; None for discrete ones.
    action_units: ActionUnits | None = None
    #: What is recorded of each choice, for what learns; see ``Columns.of``.
    extras: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        """What actors observe and do."""
        return Columns.of(
            self.network, self.actions, action_mask=self.settings.mask, extras=self.extras
        )

    @property
    def stored_columns(self) -> Columns:
        """What is stored of a step: of a history, the newest state, before it is filtered."""
        settings = self.settings
        columns = Columns.of(
            self.network,
            self.actions,
            action_mask=settings.mask,
            filtered=self.filters().states,
            extras=self.extras,
        )
        shape = stacked_shape(settings.inputs, 1)
        if settings.mask is not None and isinstance(shape, dict):
            shape = {**shape, settings.mask.name: (settings.mask.outputs,)}
        return replace(columns, observation_shape=shape)

    def filters(self) -> Filters:
        """Return new filters of the states but images, if asked for."""
        settings = self.settings
        return Filters(widths_of(settings.inputs) if settings.filter_states else None)

    @property
    @abstractmethod
    def learning_rates(self) -> dict[str, float]:
        """Those of all that is learnt, by name; ``POLICY_VARIABLE`` is the first of it."""

    def initial(self, seed: int | None) -> dict[str, FloatVector]:
        """Return all that is learnt as it is at first, float32 [size] by the same names."""
        return {POLICY_VARIABLE: initial_parameters(self.network.manifest, "uniform", seed)}

    @property
    def networks(self) -> tuple[Network, ...]:
        """All networks that are learnt."""
        return (self.network,)

    def describe_policy(self, vector: FloatVector) -> DescribedPolicy:
        """Return what actions depend on; of the parameters [size] the policy's come first.

        The statistics of filters come last.
        """
        manifest, filters = self.network.manifest, self.filters()
        own, scales = filters.separated(vector)
        return DescribedPolicy(
            network=self.network,
            parameters=manifest.unpack(own[: manifest.size]),
            distribution=self.actions,
            state_size=self.settings.inputs,
            action_mask=self.settings.mask,
            history_len=self.settings.history_len,
            heads=tuple(self.heads),
            units=self.action_units,
            scales=dict(zip(filters.states, scales, strict=True)),
        )

    def fingerprint(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on, as JSON values."""
        specs = [spec for network in self.networks for spec in network.manifest.specs]
        return {
            "algorithm": self.algorithm,
            "parameters": [[spec.name, list(spec.shape)] for spec in specs],
            **({"sees": self.network.sights} if self.network.sights else {}),
            **self.units(),
            **self.filters().fingerprint(),
        }

    def units(self) -> Mapping[str, Any]:
        """Return what -1 and 1 of an action stand for, as JSON values."""
        return {} if self.action_units is None else self.action_units.fingerprint

    @abstractmethod
    def action_space(self) -> Space:
        """Return the space of actions."""

    def scales_states(self) -> bool:
        """Return whether states are filtered."""
        return self.settings.filter_states

    def largest_reward(self) -> float:
        """Return the size up to which a reward is one that values are learnt of well."""
        if self.settings.clip_rewards:
            return inf
        return super().largest_reward() / self.settings.reward_scale

    def doubts(self) -> Sequence[str]:
        """Return what is hardly meant; see ``ConfigBase``."""
        return [*self.settings.doubts()]

    def observation_space(self) -> Space:
        """Return arrays of numbers of ``state_size``, by name if it has names; so is the mask."""
        return space_with_mask(self.settings.state_size, self.settings.mask)

    def uses_gpu(self) -> bool:
        """Return whether TensorFlow sees the GPU."""
        return self.settings.gpu


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

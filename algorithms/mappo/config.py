"""The configuration of MAPPO: which observations policy and critic see."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relaax.assembly import bundled
from relaax.learning.networks import LSTM, POLICY, Dense, Encoder, Head, Network, read_network
from relaax.learning.previous import previous_size
from relaax.learning.shapes import stacked_shape
from relaax.learning.team import TEAM
from relaax.observations import Shape

from .settings import ContinuousMappo, DiscreteMappo, settings_of


class Config(bundled("ppo").Config):  # type: ignore[misc]
    """PPO's, with a critic that sees all agents of an environment, where there are several."""

    settings: DiscreteMappo | ContinuousMappo
    name = "mappo"

    def settings_of(self, section: Mapping[str, Any]) -> DiscreteMappo | ContinuousMappo:
        """See PPO's configuration."""
        return settings_of(section)

    def network_below(self, heads: tuple[Head, ...]) -> Network:
        """Return the network: its policy sees an agent's own observations, its critic all.

        Without a description, and without a recurrent layer, they have no layer in common.
        """
        settings = self.settings
        if settings.team.size == 1:
            network: Network = super().network_below(heads)
            return network
        inputs: Mapping[str, Shape] = settings.inputs
        shapes: Any = stacked_shape(inputs, settings.history_len)
        own, previous = [name for name in inputs if name != TEAM], previous_size(self.distribution)
        seeing = tuple(replace(h, sees=_seen(h, own)) for h in heads)
        if settings.network is not None:
            return read_network(settings.network, shapes, seeing, previous)
        encoders = {name: Encoder(shapes[name]) for name in inputs}
        dense = tuple(Dense(units) for units in settings.dense_units)
        if settings.lstm:
            critic = tuple(replace(h, layers=() if h.name == POLICY else dense) for h in seeing)
            return Network(encoders, (*dense, LSTM(settings.lstm_size)), critic)
        return Network(encoders, (), tuple(replace(h, layers=dense) for h in seeing))


def _seen(head: Head, own: list[str]) -> tuple[str, ...]:
    return tuple(sorted(own if head.name == POLICY else [*own, TEAM]))

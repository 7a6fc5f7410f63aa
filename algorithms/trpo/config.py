"""The configuration of TRPO, as the servers want it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relaax.learning.networks import Dense, default_network
from relaax.learning.on_policy import PolicyConfig

from .settings import ContinuousTrpo, DiscreteTrpo, settings_of


class Config(PolicyConfig):
    """The typed settings, checked once, and the networks that they describe.

    By default policy and value of vectors share no layers, as in the paper's experiments. Of images
    and with a recurrent layer they share all hidden layers, which the policy alone moves.
    """

    settings: DiscreteTrpo | ContinuousTrpo

    def __init__(self, config: Mapping[str, Any]) -> None:
        own = settings_of(config)
        super().__init__(config, "trpo", own, own.actions)
        if own.network is None and not own.is_image and not own.lstm:
            layers = tuple(Dense(units, "tanh") for units in own.dense_units)
            heads = tuple(replace(head, layers=layers) for head in self.network.heads)
            self.network = default_network(self.network.observation_shape, (), heads)

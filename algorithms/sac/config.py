"""The configuration of SAC, as the servers want it."""

from collections.abc import Mapping
from math import prod
from typing import Any

from relaax.algorithm_base import ConfigBase
from relaax.learning.distributions import SquashedGaussian
from relaax.learning.networks import POLICY, Dense, Head, Network, default_network
from relaax.learning.networks.description import Encoder
from relaax.learning.networks.encoders import default_encoder, is_image
from relaax.learning.rollouts import Columns
from relaax.learning.shapes import space_of_states, stacked_shape
from relaax.spaces import Space, box

from .settings import Settings

#: The head of a critic, and the name of the action among its inputs.
VALUE, ACTION = "value", "action"

#: The name that an observation without one has among a critic's inputs.
OBSERVATION = "observation"


class Config(ConfigBase):
    """The typed settings, checked once, and what they make."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.settings = settings = Settings.model_validate(dict(config))
        low, high = settings.bounds
        self.distribution = SquashedGaussian(low, high, sigma="bounded_exp")
        shape = stacked_shape(settings.state_size, 1)
        layers = tuple(Dense(units) for units in settings.hidden_layers)
        self.network = default_network(shape, layers, (Head(POLICY, self.distribution.outputs),))
        inputs = shape if isinstance(shape, Mapping) else {OBSERVATION: shape}
        if ACTION in inputs:
            raise ValueError("state_size: an observation of SAC cannot be named action")
        encoders = {
            name: default_encoder(f"state_size: {name}", of_one)
            if is_image(of_one)
            else Encoder(of_one)
            for name, of_one in {**inputs, ACTION: settings.action_shape}.items()
        }
        self.critic = Network(encoders, layers, (Head(VALUE, 1),))

    @property
    def columns(self) -> Columns:
        """What is stored of a step."""
        return Columns.of(self.network, self.distribution)

    @property
    def target_entropy(self) -> float:
        """The entropy that the temperature is moved for; appendix D of the paper."""
        given = self.settings.target_entropy
        return -float(prod(self.settings.action_shape)) if given is None else given

    def fingerprint(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on, as JSON values."""
        return {
            "algorithm": "sac",
            "parameters": [
                [spec.name, list(spec.shape)]
                for network in (self.network, self.critic)
                for spec in network.manifest.specs
            ],
        }

    def observation_space(self) -> Space:
        """Return arrays of numbers of ``state_size``, by name if it has names."""
        return space_of_states(self.settings.state_size)

    def action_space(self) -> Space:
        """Return the space of actions."""
        return box("float32", self.settings.action_shape)

    def uses_gpu(self) -> bool:
        """Return whether TensorFlow sees the GPU."""
        return self.settings.gpu

"""The layers of DA3C's network: and their shapes. Without TensorFlow."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from relaax.learning.networks import Manifest, TensorSpec

from .settings import Settings


@dataclass(frozen=True)
class Convolution:
    """A convolution without padding, then ReLU."""

    filters: int
    kernel: int
    stride: int

    def output_length(self, length: int) -> int:
        """Return height or width after it."""
        return (length - self.kernel) // self.stride + 1


#: Mnih et al. 2013 (https://arxiv.org/abs/1312.5602), section 4.1; seed 003, "Agent's Neural
#: Network".
CONVOLUTIONS = (Convolution(16, 8, 4), Convolution(32, 4, 2))


@dataclass(frozen=True)
class Network:
    """What the network is made of; two equal networks have interchangeable parameters."""

    observation_shape: tuple[int, ...]
    action_size: int
    convolutions: tuple[Convolution, ...]
    dense_units: tuple[int, ...]
    #: Cells of the recurrent layer; 0 without one.
    lstm_size: int

    @classmethod
    def of(cls, settings: Settings) -> "Network":
        """Return the network of a configuration; ValueError if an image is too small."""
        network = cls(
            observation_shape=settings.observation_shape,
            action_size=settings.action_size,
            convolutions=CONVOLUTIONS if settings.is_image else (),
            dense_units=settings.dense_units,
            lstm_size=settings.lstm_size if settings.lstm else 0,
        )
        if min(network.image_shapes()[-1]) < 1:
            raise ValueError(f"state_size {list(settings.state_size)} is too small to convolve")
        return network

    def image_shapes(self) -> list[tuple[int, ...]]:
        """Return the shape of one observation before and after each convolution."""
        shapes = [self.observation_shape]
        for layer in self.convolutions:
            height, width, _ = shapes[-1]
            shapes.append((layer.output_length(height), layer.output_length(width), layer.filters))
        return shapes

    def manifest(self) -> Manifest:
        """Return names and shapes of all parameters, in the order of the flat vector."""
        specs: list[TensorSpec] = []
        shapes = self.image_shapes()
        for index, (layer, shape) in enumerate(zip(self.convolutions, shapes, strict=False)):
            kernel = (layer.kernel, layer.kernel, shape[-1], layer.filters)
            specs += _layer(f"conv{index}", kernel, int(np.prod(kernel[:-1])))
        sizes = [int(np.prod(shapes[-1])), *self.dense_units]
        for index, (inputs, units) in enumerate(pairwise(sizes)):
            specs += _layer(f"dense{index}", (inputs, units), inputs)
        features = sizes[-1]
        if self.lstm_size:
            inputs = features + self.lstm_size
            specs += _layer("lstm", (inputs, 4 * self.lstm_size), inputs)
            features = self.lstm_size
        specs += _layer("policy", (features, self.action_size), features)
        specs += _layer("value", (features, 1), features)
        return Manifest(tuple(specs))

    def fingerprint(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on, as JSON values."""
        return {
            "algorithm": "da3c",
            "observation_shape": list(self.observation_shape),
            "action_size": self.action_size,
            "convolutions": [[c.filters, c.kernel, c.stride] for c in self.convolutions],
            "dense_units": list(self.dense_units),
            "lstm_size": self.lstm_size,
        }


def _layer(name: str, kernel: tuple[int, ...], fan_in: int) -> list[TensorSpec]:
    return [
        TensorSpec(f"{name}/kernel", kernel, fan_in),
        TensorSpec(f"{name}/bias", kernel[-1:], fan_in),
    ]

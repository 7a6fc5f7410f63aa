"""The layers of a network, and the shapes of their parameters."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

from relaax.learning.networks.manifest import ParameterManifest, TensorSpec

#: The head that actions are chosen from.
POLICY = "policy"


@dataclass(frozen=True)
class Convolution:
    """A convolution without padding, then ReLU."""

    filters: int
    kernel: int
    stride: int

    def output_length(self, length: int) -> int:
        """Return height or width after it."""
        return (length - self.kernel) // self.stride + 1


@dataclass(frozen=True)
class Head:
    """A linear layer on top of the network, and the name of what it puts out."""

    name: str
    units: int


@dataclass(frozen=True)
class Network:
    """Convolutions, dense layers, perhaps a recurrent one, and heads.

    Two equal networks have interchangeable parameters.
    """

    observation_shape: tuple[int, ...]
    dense_units: tuple[int, ...]
    heads: tuple[Head, ...]
    convolutions: tuple[Convolution, ...] = ()
    #: Cells of the recurrent layer; 0 without one.
    lstm_size: int = 0

    def image_shapes(self) -> list[tuple[int, ...]]:
        """Return the shape of one observation before and after each convolution."""
        shapes = [self.observation_shape]
        for layer in self.convolutions:
            height, width, _ = shapes[-1]
            shapes.append((layer.output_length(height), layer.output_length(width), layer.filters))
        return shapes

    @cached_property
    def manifest(self) -> ParameterManifest:
        """Names and shapes of all parameters, in the order of the flat vector."""
        specs: list[TensorSpec] = []
        shapes = self.image_shapes()
        for index, (layer, shape) in enumerate(zip(self.convolutions, shapes, strict=False)):
            kernel = (layer.kernel, layer.kernel, shape[-1], layer.filters)
            specs += _layer(f"conv{index}", kernel, prod(kernel[:-1]))
        sizes = [prod(shapes[-1]), *self.dense_units]
        for index, (inputs, units) in enumerate(pairwise(sizes)):
            specs += _layer(f"dense{index}", (inputs, units), inputs)
        features = sizes[-1]
        if self.lstm_size:
            inputs = features + self.lstm_size
            specs += _layer("lstm", (inputs, 4 * self.lstm_size), inputs)
            features = self.lstm_size
        for head in self.heads:
            specs += _layer(head.name, (features, head.units), features)
        return ParameterManifest(tuple(specs))


def _layer(name: str, kernel: tuple[int, ...], fan_in: int) -> list[TensorSpec]:
    return [
        TensorSpec(f"{name}/kernel", kernel, fan_in),
        TensorSpec(f"{name}/bias", kernel[-1:], fan_in),
    ]

"""The kinds of layers: the shape of their outputs, and their parameters.

A layer is given the shape of one input, without a batch: (units,) for a vector, (height, width,
channels) for an image. The fields of a layer are its keys in a configuration; pydantic checks them
there (``reading``).
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Field

from relaax.learning.networks.manifest import TensorSpec
from relaax.observations import Shape

Count: TypeAlias = Annotated[int, Field(gt=0, strict=True)]
Activation: TypeAlias = Literal["linear", "relu", "tanh", "elu", "silu", "swish", "sigmoid"]

#: What orthogonal kernels are multiplied with, so that signals keep their mean square through a
#: layer and its activation f: 1/sqrt(E[f(z)**2]) for normal z. For ReLU it is exact, and that of
#: He et al. 2015 (https://arxiv.org/abs/1502.01852). A sigmoid's outputs are not around 0.
GAINS: dict[str, float] = {
    "linear": 1.0,
    "relu": 2.0**0.5,
    "tanh": 1.5927,
    "elu": 1.2452,
    "silu": 1.6765,
    "swish": 1.6765,
    "sigmoid": 1.0,
}

#: Dimensions of an image: height, width and channels.
_IMAGE = 3

_NO_OTHER_KEYS = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Dense:
    """A weighted sum of all inputs for each unit; an image is flattened before."""

    kind: ClassVar[str] = "dense"
    stem: ClassVar[str] = "dense"
    __pydantic_config__: ClassVar[ConfigDict] = _NO_OTHER_KEYS

    units: Count
    activation: Activation = "relu"

    def output_shape(self, shape: Shape) -> Shape:
        """Return ``(units,)``."""
        return (self.units,)

    def parameters(self, name: str, shape: Shape) -> list[TensorSpec]:
        """Return a kernel [inputs, units] and a bias."""
        return weights(name, (prod(shape), self.units), GAINS[self.activation])


@dataclass(frozen=True)
class SharedDense:
    """The same dense layer for each of ``parts`` equal parts of its input, such as agents' views.

    With ``bias: own`` each part has a bias of its own: that is what a one-hot vector of the part's
    number, joined with the part, would add.
    """

    kind: ClassVar[str] = "shared_dense"
    stem: ClassVar[str] = "shared"
    __pydantic_config__: ClassVar[ConfigDict] = _NO_OTHER_KEYS

    units: Count
    parts: Count
    activation: Activation = "relu"
    bias: Literal["shared", "own"] = "shared"

    def output_shape(self, shape: Shape) -> Shape:
        """Return ``(parts * units,)``; ValueError for an input without so many equal parts."""
        if prod(shape) % self.parts:
            raise ValueError(f"{prod(shape)} numbers cannot be cut into {self.parts} equal parts")
        return (self.parts * self.units,)

    def parameters(self, name: str, shape: Shape) -> list[TensorSpec]:
        """Return a kernel [inputs of a part, units] and a bias [units], or [parts, units]."""
        kernel, bias = weights(
            name, (prod(shape) // self.parts, self.units), GAINS[self.activation]
        )
        own = (self.parts, self.units) if self.bias == "own" else bias.shape
        return [kernel, replace(bias, shape=own)]


@dataclass(frozen=True)
class Convolution:
    """A convolution with square kernels.

    With ``padding: same`` zeros surround the image, so that only the stride makes it smaller.
    """

    kind: ClassVar[str] = "conv2d"
    stem: ClassVar[str] = "conv"
    __pydantic_config__: ClassVar[ConfigDict] = _NO_OTHER_KEYS

    filters: Count
    kernel: Count
    stride: Count = 1
    padding: Literal["valid", "same"] = "valid"
    activation: Activation = "relu"

    def output_shape(self, shape: Shape) -> Shape:
        """Return (height, width, filters); ValueError unless it is an image, and large enough."""
        height, width, _ = _image(shape)
        height, width = self._length(height), self._length(width)
        if min(height, width) < 1:
            raise ValueError(
                f"the image has become too small: it is {shape[0]}x{shape[1]}, "
                f"the kernel {self.kernel}x{self.kernel}"
            )
        return (height, width, self.filters)

    def parameters(self, name: str, shape: Shape) -> list[TensorSpec]:
        """Return a kernel [height, width, channels, filters] and a bias."""
        kernel = (self.kernel, self.kernel, shape[-1], self.filters)
        return weights(name, kernel, GAINS[self.activation])

    def _length(self, length: int) -> int:
        if self.padding == "same":
            return -(-length // self.stride)
        return (length - self.kernel) // self.stride + 1


@dataclass(frozen=True)
class TransposedConvolution:
    """The transpose of a convolution with square kernels, which makes an image larger.

    Each place of the image adds its kernel, ``stride`` further on than the place before (Dumoulin
    and Visin 2016, https://arxiv.org/abs/1603.07285, section 4). With ``padding: same`` the edges
    are cut off, so that only the stride makes the image larger.
    """

    kind: ClassVar[str] = "conv2d_transpose"
    stem: ClassVar[str] = "deconv"
    __pydantic_config__: ClassVar[ConfigDict] = _NO_OTHER_KEYS

    filters: Count
    kernel: Count
    stride: Count = 1
    padding: Literal["valid", "same"] = "valid"
    activation: Activation = "relu"

    def output_shape(self, shape: Shape) -> Shape:
        """Return (height, width, filters); ValueError for an input that is not an image."""
        height, width, _ = _image(shape)
        return (self._length(height), self._length(width), self.filters)

    def parameters(self, name: str, shape: Shape) -> list[TensorSpec]:
        """Return a kernel [height, width, channels, filters] and a bias."""
        kernel = (self.kernel, self.kernel, shape[-1], self.filters)
        return weights(name, kernel, GAINS[self.activation])

    def _length(self, length: int) -> int:
        if self.padding == "same":
            return length * self.stride
        return (length - 1) * self.stride + self.kernel


@dataclass(frozen=True)
class Reshape:
    """The same numbers in another shape, for instance an image of a vector's numbers."""

    kind: ClassVar[str] = "reshape"
    stem: ClassVar[str] = "reshape"
    activation: ClassVar[str] = "linear"
    __pydantic_config__: ClassVar[ConfigDict] = _NO_OTHER_KEYS

    shape: Annotated[tuple[Count, ...], Field(min_length=1)]

    def output_shape(self, shape: Shape) -> Shape:
        """Return the new shape; ValueError if it has another number of elements."""
        if prod(shape) != prod(self.shape):
            raise ValueError(
                f"shape {list(self.shape)} has {prod(self.shape)} numbers, its input {list(shape)} "
                f"has {prod(shape)}"
            )
        return self.shape

    def parameters(self, name: str, shape: Shape) -> list[TensorSpec]:
        """Return no parameters."""
        return []


@dataclass(frozen=True)
class LayerNorm:
    """Mean 0 and variance 1 over the last axis, then a scale and an offset for each place in it.

    Ba et al. 2016 (https://arxiv.org/abs/1607.06450): over the units of a vector, and over the
    channels at each place of an image.
    """

    kind: ClassVar[str] = "layer_norm"
    stem: ClassVar[str] = "norm"
    __pydantic_config__: ClassVar[ConfigDict] = _NO_OTHER_KEYS
    #: Added to the variance.
    EPSILON: ClassVar[float] = 1e-5

    activation: Activation = "linear"

    def output_shape(self, shape: Shape) -> Shape:
        """Return ``shape``."""
        return shape

    def parameters(self, name: str, shape: Shape) -> list[TensorSpec]:
        """Return a scale, ones at first, and an offset, zeros at first."""
        size = shape[-1:]
        return [
            TensorSpec(f"{name}/scale", size, shape[-1], start=1.0),
            TensorSpec(f"{name}/offset", size, shape[-1], start=0.0),
        ]


@dataclass(frozen=True)
class LSTM:
    """A recurrent layer of cells; Hochreiter and Schmidhuber 1997."""

    kind: ClassVar[str] = "lstm"
    stem: ClassVar[str] = "lstm"
    __pydantic_config__: ClassVar[ConfigDict] = _NO_OTHER_KEYS

    units: Count

    def output_shape(self, shape: Shape) -> Shape:
        """Return ``(units,)``."""
        return (self.units,)

    def parameters(self, name: str, shape: Shape) -> list[TensorSpec]:
        """Return a kernel [inputs and units, 4 gates of units] and a bias."""
        return weights(name, (prod(shape) + self.units, 4 * self.units))


Layer: TypeAlias = (
    Dense | SharedDense | Convolution | TransposedConvolution | Reshape | LayerNorm | LSTM
)

#: By the names that configurations use.
KINDS: dict[str, type[Layer]] = {
    layer.kind: layer
    for layer in (Dense, SharedDense, Convolution, TransposedConvolution, Reshape, LSTM, LayerNorm)
}


def _image(shape: Shape) -> Shape:
    """Return ``shape``; ValueError unless it is an image's shape."""
    if len(shape) != _IMAGE:
        raise ValueError(f"needs an image [height, width, channels], its input is {list(shape)}")
    return shape


def weights(name: str, kernel: Shape, gain: float = 1.0) -> list[TensorSpec]:
    """Return a kernel, whose last axis is its units, and their bias."""
    fan_in = prod(kernel[:-1])
    return [
        TensorSpec(f"{name}/kernel", kernel, fan_in, gain),
        TensorSpec(f"{name}/bias", kernel[-1:], fan_in),
    ]

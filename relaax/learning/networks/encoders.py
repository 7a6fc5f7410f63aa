"""The layers of observations that no configuration describes."""

from collections.abc import Mapping

from relaax.learning.networks.description import Encoder, Head, Network
from relaax.learning.networks.layers import Convolution, Dense, Layer, TransposedConvolution
from relaax.observations import Shape, Shapes

#: Mnih et al. 2013 (https://arxiv.org/abs/1312.5602), section 4.1; seed 003, "Agent's Neural
#: Network".
CONVOLUTIONS = (Convolution(16, 8, 4), Convolution(32, 4, 2))

#: Of named observations, before they are joined.
_IMAGE_UNITS = 256
_VECTOR_UNITS = 64

#: Dimensions of one image after preprocessing: height, width and channels.
_IMAGE = 3


def is_image(shape: Shape) -> bool:
    """Return whether an observation of ``shape``, after preprocessing, is an image."""
    return len(shape) == _IMAGE


def sees_pictures(encoder: Encoder) -> bool:
    """Return whether an observation usually comes as bytes: where convolutions look at it.

    An observation that only dense layers see is a table of numbers.
    """
    kinds = Convolution | TransposedConvolution
    return any(isinstance(layer, kinds) for layer in encoder.layers)


def default_encoder(place: str, shape: Shape) -> Encoder:
    """Return the encoder of a named observation: convolutions for an image, then a dense layer.

    ValueError for an image that is too small; it names the ``place``.
    """
    if not is_image(shape):
        return Encoder(shape, (Dense(_VECTOR_UNITS),))
    return Encoder(shape, (*_convolutions_of(shape, place), Dense(_IMAGE_UNITS)))


def default_network(
    observation_shape: Shapes, layers: tuple[Layer, ...], heads: tuple[Head, ...]
) -> Network:
    """Return the network with ``layers`` where no configuration describes another.

    Convolutions come before them if the observation is an image. Named observations have their
    default encoders. ValueError for an image that is too small.
    """
    if isinstance(observation_shape, Mapping):
        encoders = {
            name: default_encoder(f"state_size: {name}", shape)
            for name, shape in observation_shape.items()
        }
        return Network(encoders, layers, heads)
    if is_image(observation_shape):
        layers = (*_convolutions_of(observation_shape, "state_size"), *layers)
    return Network.of(observation_shape, layers, heads)


def _convolutions_of(shape: Shape, place: str) -> tuple[Layer, ...]:
    least = 1
    for layer in reversed(CONVOLUTIONS):
        least = (least - 1) * layer.stride + layer.kernel
    if min(shape[:2]) < least:
        raise ValueError(
            f"{place}: an image of {list(shape[:2])} is too small for the default convolutions, "
            f"which need [{least}, {least}]; describe layers of its own with the key 'network'"
        )
    return CONVOLUTIONS

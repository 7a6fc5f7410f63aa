"""DA3C's network: which layers a configuration asks for."""

from typing import Any

from relaax.learning.networks import POLICY, Convolution, Head, Network
from relaax.learning.preprocessor import stacked_shape

from .settings import Settings

#: The head that says what a state is worth.
VALUE = "value"

#: Mnih et al. 2013 (https://arxiv.org/abs/1312.5602), section 4.1; seed 003, "Agent's Neural
#: Network".
CONVOLUTIONS = (Convolution(16, 8, 4), Convolution(32, 4, 2))


def network_of(settings: Settings) -> Network:
    """Return the network of a configuration; ValueError if an image is too small."""
    network = Network(
        observation_shape=stacked_shape(settings.state_size, settings.history_len),
        convolutions=CONVOLUTIONS if settings.is_image else (),
        dense_units=settings.dense_units,
        lstm_size=settings.lstm_size if settings.lstm else 0,
        heads=(Head(POLICY, settings.action_size), Head(VALUE, 1)),
    )
    if min(network.image_shapes()[-1]) < 1:
        raise ValueError(f"state_size {list(settings.state_size)} is too small to convolve")
    return network


def fingerprint_of(network: Network) -> dict[str, Any]:
    """Return what a checkpoint must agree on, as JSON values."""
    return {
        "algorithm": "da3c",
        "observation_shape": list(network.observation_shape),
        "action_size": network.heads[0].units,
        "convolutions": [[c.filters, c.kernel, c.stride] for c in network.convolutions],
        "dense_units": list(network.dense_units),
        "lstm_size": network.lstm_size,
    }

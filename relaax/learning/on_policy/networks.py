"""The network of an actor-critic: which layers a configuration asks for."""

from typing import Any

from relaax.learning.networks import (
    LSTM,
    Convolution,
    Dense,
    Head,
    Layer,
    Network,
    default_network,
    read_network,
)
from relaax.learning.networks.description import written
from relaax.learning.on_policy.policy_settings import RolloutSettings
from relaax.learning.shapes import stacked_shape
from relaax.observations import UNNAMED

#: The head of a state's value.
VALUE = "value"


def network_of(settings: RolloutSettings, heads: tuple[Head, ...], previous: int) -> Network:
    """Return the network below ``heads``; ValueError for one that cannot be made.

    ``previous``: how many numbers an action is as an input.
    """
    shape = stacked_shape(settings.inputs, settings.history_len)
    if settings.network is not None:
        return read_network(settings.network, shape, heads, previous)
    dense = tuple(Dense(units) for units in settings.dense_units)
    recurrent = (LSTM(settings.lstm_size),) if settings.lstm else ()
    return default_network(shape, (*dense, *recurrent), heads)


def layers_of(network: Network) -> dict[str, Any]:
    """Return the layers that a checkpoint must agree on, as JSON values."""
    layers = _seeds_layers(network)
    if layers is None:
        layers = {
            "observations": [
                f"{name or 'state'} {list(encoder.shape)}: {_written(encoder.layers)}"
                for name, encoder in sorted(network.encoders.items())
            ],
            "layers": _written(network.layers),
        }
    heads = {head.name: _written(head.layers) for head in network.heads if head.layers}
    more = {"heads": heads, "sees": network.sights}
    return {**layers, **{key: value for key, value in more.items() if value}}


def _written(layers: tuple[Layer, ...]) -> str:
    return ", ".join(written(layer) for layer in layers)


def _seeds_layers(network: Network) -> dict[str, Any] | None:
    """Return the layers as checkpoints have always named them; None if they say too little.

    They name convolutions, then dense layers, all with ReLU, and a recurrent layer.
    """
    if network.is_named:
        return None
    layers = network.encoders[UNNAMED].layers
    convolutions = [layer for layer in layers if isinstance(layer, Convolution)]
    dense = [layer for layer in layers if isinstance(layer, Dense)]
    named = Network.of(
        network.encoders[UNNAMED].shape,
        (
            *(Convolution(c.filters, c.kernel, c.stride) for c in convolutions),
            *(Dense(layer.units) for layer in dense),
            *network.layers,
        ),
        network.heads,
    )
    if named != network:
        return None
    return {
        "observation_shape": list(network.encoders[UNNAMED].shape),
        "convolutions": [[c.filters, c.kernel, c.stride] for c in convolutions],
        "dense_units": [layer.units for layer in dense],
        "lstm_size": network.lstm_size,
    }

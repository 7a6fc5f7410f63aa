"""Networks that value an action in a state."""

import numpy as np

from relaax.algorithm_base import FloatVector
from relaax.learning.networks import Head, Network, initial_parameters
from relaax.learning.networks.description import Encoder
from relaax.learning.networks.layers import Convolution, TransposedConvolution
from relaax.observations import UNNAMED, Shape

#: The head of a critic, and the name of the action among its inputs.
VALUE, ACTION = "value", "action"

#: The name of all critics' parameters, among what is learnt.
CRITICS = "critics"

#: The name that an observation without one has among a critic's inputs.
OBSERVATION = "observation"


def initial_critics(
    critic: Network, count: int, seed: int | None, initialization: str = "uniform"
) -> FloatVector:
    """Return the first parameters of ``count`` critics, one behind another."""
    seeds = [None if seed is None else seed + 1 + number for number in range(count)]
    return np.concatenate([initial_parameters(critic.manifest, initialization, s) for s in seeds])


def critic_of(policy: Network, action_shape: Shape) -> Network:
    """Return the network with the layers of ``policy`` that sees the action, too.

    The action is joined with the outputs of the encoders; the encoder of one observation without a
    name has its layers up to the last convolution. ValueError for an observation that is named as
    the action is.
    """
    if ACTION in policy.encoders:
        raise ValueError(f"state_size: an observation cannot be named {ACTION}")
    encoders, layers = dict(policy.encoders), policy.layers
    if not policy.is_named:
        alone = encoders.pop(UNNAMED)
        kinds = Convolution | TransposedConvolution
        convolutions = [isinstance(layer, kinds) for layer in alone.layers]
        convolved = max((n for n, is_one in enumerate(convolutions, 1) if is_one), default=0)
        encoders[OBSERVATION] = Encoder(alone.shape, alone.layers[:convolved])
        layers = (*alone.layers[convolved:], *layers)
    return Network({**encoders, ACTION: Encoder(action_shape)}, layers, (Head(VALUE, 1),))

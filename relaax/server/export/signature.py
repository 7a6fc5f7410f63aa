"""The inputs and outputs of a written policy.

All have a first axis of environments, B, of any length.

=====================  =======================================================================
``state``              the states as environments send them; by their names if they have any
``start``              bool [B]: whether an episode begins; only for a policy with memory
``history``            the states before, side by side along the last axis: ``history_NAME``
``lstm``               float32 [B, 2, H]: cells and outputs of the recurrent layer
``action``             the policy's most probable action, in the environment's units
``policy``             float32 [B, N]: the network's output behind the action
``next_...``           the ``history`` and ``lstm`` of the next call
=====================  =======================================================================
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from relaax.errors import ConfigurationError
from relaax.learning.action_units import ActionUnits
from relaax.learning.described_policy import DescribedPolicy
from relaax.learning.filters import Scale
from relaax.learning.networks.description import PREVIOUS_ACTION, PREVIOUS_REWARD
from relaax.learning.networks.encoders import sees_pictures
from relaax.learning.shapes import length_alone, lengths_by_name, needs_axis, stacked_shape
from relaax.observations import UNNAMED, Shape

STATE, START, LSTM, ACTION, POLICY = "state", "start", "lstm", "action", "policy"
NEXT = "next_"

_RESERVED = (START, LSTM, ACTION, POLICY)


@dataclass(frozen=True)
class TensorInfo:
    """An input: its name, its shape without the axis of environments, and its type."""

    name: str
    shape: Shape
    dtype: str


@dataclass(frozen=True)
class ObservationInput:
    """One observation."""

    #: Its name in the configuration.
    name: str
    state: TensorInfo
    #: None where it is not stacked.
    history: TensorInfo | None
    #: How many states are stacked.
    length: int
    #: Whether it gets a last axis along which it is stacked.
    needs_axis: bool
    #: Its filter, if there is one.
    scale: Scale | None = None


@dataclass(frozen=True)
class Signature:
    """The inputs of a policy, and the units of its actions."""

    observations: tuple[ObservationInput, ...]
    mask: TensorInfo | None
    lstm: TensorInfo | None
    #: Makes the environment's actions of the policy's; None for discrete ones.
    units: ActionUnits | None = None
    #: The shapes of observations that the configuration names, and the policy does not see.
    unseen: Mapping[str, Shape] = field(default_factory=dict)

    @property
    def remembers(self) -> bool:
        """Whether an action depends on earlier states."""
        return self.lstm is not None or any(each.history for each in self.observations)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """All inputs, in order."""
        states = [each.state for each in self.observations]
        masks = [self.mask] if self.mask is not None else []
        starts = [TensorInfo(START, (), "bool")] if self.remembers else []
        return (*states, *masks, *starts, *self.remembered)

    @property
    def remembered(self) -> tuple[TensorInfo, ...]:
        """The outputs that are inputs of the next call; any numbers at an episode's start."""
        histories = [each.history for each in self.observations if each.history is not None]
        return (*histories, *([self.lstm] if self.lstm is not None else []))


def signature_of(policy: DescribedPolicy, has_float_images: bool = False) -> Signature:
    """Return the inputs of a policy: the observations that its own heads see.

    Images for convolutions are bytes, unless ``has_float_images``. ConfigurationError for
    observations whose names cannot be told apart, and for a previous action or reward.
    """
    sizes, lstm_size = policy.state_size, policy.network.lstm_size
    if isinstance(sizes, Mapping):
        lengths = lengths_by_name(sizes, policy.history_len)
    else:
        sizes, lengths = {UNNAMED: sizes}, {UNNAMED: length_alone(policy.history_len)}
    network = policy.network
    seen = network.seen_by(network.head(name) for name in policy.heads)
    if {PREVIOUS_ACTION, PREVIOUS_REWARD} & set(seen):
        raise ConfigurationError(
            "network: previous: a policy that sees its previous action or reward is not exported; "
            "let it act behind relaax-rlx-server --exploit"
        )
    observations = tuple(
        _observation(policy, name, shape, lengths[name], has_float_images)
        for name, shape in sizes.items()
        if name in seen
    )
    mask = policy.action_mask
    signature = Signature(
        observations,
        None if mask is None else TensorInfo(_identifier(mask.name), (mask.outputs,), "uint8"),
        TensorInfo(LSTM, (2, lstm_size), "float32") if lstm_size else None,
        policy.units,
        {name: shape for name, shape in sizes.items() if name not in seen},
    )
    names = [each.name for each in signature.inputs]
    if len(set(names)) < len(names):
        raise ConfigurationError(
            f"observations cannot be told apart in a file: their names become {', '.join(names)}"
        )
    return signature


def _observation(
    policy: DescribedPolicy, name: str, shape: Shape, length: int, has_float_images: bool
) -> ObservationInput:
    written = STATE if name == UNNAMED else _identifier(name)
    is_bytes = sees_pictures(policy.network.encoders[name]) and not has_float_images
    seen = "uint8" if is_bytes else "float32"
    scale, history = policy.scales.get(name), None
    if length > 1:
        kept = "history" if name == UNNAMED else f"history_{written}"
        history = TensorInfo(kept, stacked_shape(shape, length), seen)
    sent = "float64" if scale is not None and scale.needs_double else seen
    return ObservationInput(
        name, TensorInfo(written, shape, sent), history, length, needs_axis(shape), scale
    )


def _identifier(name: str) -> str:
    """Return a name of letters, digits and underscores, which every format takes."""
    written = re.sub(r"[^0-9A-Za-z_]", "_", name)
    is_taken = written in _RESERVED or not re.match(r"[A-Za-z]", written)
    return f"{STATE}_{written}" if is_taken else written


def zeros_of(signature: Signature, count: int) -> dict[str, np.ndarray]:
    """Return the memory at the start, by name, for ``count`` environments."""
    return {each.name: np.zeros((count, *each.shape), each.dtype) for each in signature.remembered}

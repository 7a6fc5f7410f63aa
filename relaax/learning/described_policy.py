"""All that an action depends on, for programs that act without this package."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from relaax.learning.action_mask import ActionMask
from relaax.learning.action_units import ActionUnits
from relaax.learning.distributions.base import ActionHead
from relaax.learning.filters import Scale
from relaax.learning.networks import POLICY, Network
from relaax.observations import Shapes

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class DescribedPolicy:
    """A policy with its parameters: the data of ``Preprocessor``, ``PolicyModel``, ``Actor``."""

    network: Network
    #: By the names of the network's manifest.
    parameters: Mapping[str, FloatArray]
    #: Makes actions of what ``heads`` put out, joined.
    distribution: ActionHead
    #: The shapes of states, without that of the mask.
    state_size: Shapes
    history_len: int | Mapping[str, int] = 1
    heads: tuple[str, ...] = (POLICY,)
    action_mask: ActionMask | None = None
    #: By name, for states that are filtered.
    scales: Mapping[str, Scale] = field(default_factory=dict)
    #: Makes actions of the plant of these; None where they are the same.
    units: ActionUnits | None = None

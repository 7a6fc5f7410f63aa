"""What one row of a rollout is made of."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.action_mask import ActionMask
from relaax.learning.distributions.base import ActionHead
from relaax.learning.networks.description import Network
from relaax.learning.networks.encoders import is_image, sees_pictures
from relaax.observations import UNNAMED, Observations, Shapes, mapped

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Columns:
    """Shapes and types of what an algorithm observes, does and remembers."""

    #: By name if observations have names.
    observation_shape: Shapes
    #: The usual one, to prepare for; by name, too. Of ``open_types`` it may be another.
    observation_dtype: npt.DTypeLike | Mapping[str, npt.DTypeLike]
    #: Of one action; () for a number.
    action_shape: tuple[int, ...]
    action_dtype: npt.DTypeLike
    #: Cells of the recurrent layer; 0 without one.
    recurrent_size: int = 0
    #: Names of observations whose type is that of the first one that comes, and stays.
    open_types: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        network: Network,
        distribution: ActionHead,
        observation_dtype: npt.DTypeLike | None = None,
        action_mask: ActionMask | None = None,
        filtered: Collection[str] = (),
    ) -> "Columns":
        """Return the columns of what ``network`` observes and ``distribution`` draws.

        Without ``observation_dtype`` vectors are of float32, and those that are still to be
        ``filtered`` of float64. Images may be of bytes or of float32: what sees them with
        convolutions usually gets bytes. ``action_mask`` is the observation, of named ones, that is
        no input of the network but says which actions are allowed.
        """
        shape, types = network.observation_shape, _usual_types(network, filtered)
        if not isinstance(shape, dict):
            dtype: Any = types[UNNAMED] if observation_dtype is None else observation_dtype
        else:
            dtype = types
            if action_mask is not None:
                shape[action_mask.name], dtype[action_mask.name] = (action_mask.outputs,), np.uint8
        return cls(
            observation_shape=shape,
            observation_dtype=dtype,
            action_shape=distribution.action_shape,
            action_dtype=distribution.action_dtype,
            recurrent_size=network.lstm_size,
            open_types=frozenset(
                name for name, encoder in network.encoders.items() if is_image(encoder.shape)
            ),
        )

    def observations(self, *counts: int) -> Observations:
        """Return observations of zeros [*counts, ...], by name if they have names."""
        if isinstance(self.observation_shape, Mapping):
            zeros: Observations = mapped(
                lambda shape, dtype: np.zeros((*counts, *shape), dtype),
                self.observation_shape,
                self.observation_dtype,
            )
            return zeros
        dtype: Any = self.observation_dtype
        return np.zeros((*counts, *self.observation_shape), dtype)

    def actions(self, *counts: int) -> npt.NDArray[Any]:
        """Return actions of zeros [*counts, ...]."""
        return np.zeros((*counts, *self.action_shape), self.action_dtype)

    def recurrent_state(self, count: int) -> FloatArray:
        """Return the state (cell, output) at the start of episodes: zeros [2, count, H]."""
        return np.zeros((2, count, self.recurrent_size), np.float32)


def _usual_types(network: Network, filtered: Collection[str]) -> dict[str, npt.DTypeLike]:
    """Return the types that observations usually have, by name."""
    types: dict[str, npt.DTypeLike] = {}
    for name, encoder in network.encoders.items():
        types[name] = np.uint8 if sees_pictures(encoder) else np.float32
        if name in filtered:
            types[name] = np.float64
    return types

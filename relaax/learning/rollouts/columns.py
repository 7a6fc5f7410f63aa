"""What one row of a rollout is made of."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.action_mask import ActionMask
from relaax.learning.distributions.base import ActionHead
from relaax.learning.networks.description import Network
from relaax.learning.networks.encoders import is_image, sees_pictures
from relaax.learning.rollouts.labels import LABELS
from relaax.observations import UNNAMED, Observations, Shapes, mapped
from relaax.replay.schema import Column

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]

#: What policies can record of a choice: the logarithm of its probability, the outputs that the
#: action was drawn from, and the noise that it was drawn with. Beside these, each head of the
#: network by its name.
LOG_PROBABILITY, DISTRIBUTION, NOISE = "log_probability", "distribution", "noise"

_NUMBER = Column(np.dtype(np.float32))


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
    #: What is recorded of each choice, by the names that ``Choice.extras`` has, and ``labels``.
    extras: Mapping[str, Column] = field(default_factory=lambda: {LOG_PROBABILITY: _NUMBER})

    @property
    def of_policy(self) -> tuple[str, ...]:
        """The extras that a policy says of its choices: all but labels."""
        return tuple(name for name in self.extras if name not in LABELS)

    @classmethod
    def of(
        cls,
        network: Network,
        distribution: ActionHead,
        observation_dtype: npt.DTypeLike | None = None,
        action_mask: ActionMask | None = None,
        filtered: Collection[str] = (),
        extras: Iterable[str] = (LOG_PROBABILITY,),
        own_extras: Mapping[str, Column] | None = None,
    ) -> "Columns":
        """Return the columns of what ``network`` observes and ``distribution`` draws.

        Without ``observation_dtype`` vectors are of float32, and those that are still to be
        ``filtered`` of float64. Images may be of bytes or of float32: what sees them with
        convolutions usually gets bytes. ``action_mask`` is the observation, of named ones, that is
        no input of the network but says which actions are allowed. ``extras`` are recorded of each
        choice, and may be ``labels``; ValueError for a name that is unknown. ``own_extras`` are
        those of a policy of your own.
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
            extras={**_extras(extras, network, distribution), **(own_extras or {})},
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

    def extras_of(self, *counts: int) -> dict[str, Array]:
        """Return extras of zeros [*counts, ...] by name."""
        return {
            name: np.zeros((*counts, *column.shape), column.dtype)
            for name, column in self.extras.items()
        }

    def recurrent_state(self, count: int) -> FloatArray:
        """Return the state (cell, output) at the start of episodes: zeros [2, count, H]."""
        return np.zeros((2, count, self.recurrent_size), np.float32)


def _extras(names: Iterable[str], network: Network, distribution: ActionHead) -> dict[str, Column]:
    noise = distribution.noise(np.random.default_rng(0), 1)
    shapes = {
        **{head.name: (head.outputs,) for head in network.heads},
        LOG_PROBABILITY: (),
        DISTRIBUTION: (distribution.outputs,),
        NOISE: noise.shape[1:],
    }
    known = {name: Column(np.dtype(np.float32), shape) for name, shape in shapes.items()}
    known = {**known, **LABELS}
    for name in names:
        if name not in known:
            raise ValueError(f"extras: {name}: there is {', '.join(sorted(known))}")
    return {name: known[name] for name in names}


def _usual_types(network: Network, filtered: Collection[str]) -> dict[str, npt.DTypeLike]:
    """Return the types that observations usually have, by name."""
    types: dict[str, npt.DTypeLike] = {}
    for name, encoder in network.encoders.items():
        types[name] = np.uint8 if sees_pictures(encoder) else np.float32
        if name in filtered:
            types[name] = np.float64
    return types

"""The configuration of da3c_cont."""

from collections.abc import Mapping
from math import log, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.actor_critic import ActorCriticConfig
from relaax.learning.distributions import DiagonalGaussian
from relaax.learning.filters import Filters
from relaax.learning.networks import POLICY, Head
from relaax.observations import UNNAMED, Shapes
from relaax.spaces import box

from .settings import Settings

FloatArray = npt.NDArray[np.float32]


class Config(ActorCriticConfig):
    """An actor-critic that draws each number of an action from a normal distribution."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        own = self._own = Settings.model_validate(dict(config))
        shape, count, is_free = own.action_shape, prod(own.action_shape), own.sigma == "free"
        policy = Head(POLICY, 2 * count)
        if is_free:
            policy = Head(POLICY, count, count, log(own.initial_sigma))
        super().__init__(
            config,
            "da3c_cont",
            own,
            DiagonalGaussian(shape, "exp" if is_free else "softplus"),
            box("float32", shape),
            action_size=count,
            policy=policy,
        )

    def fingerprint(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on, as JSON values."""
        return {**super().fingerprint(), "sigma": self._own.sigma}

    def filters(self) -> Filters:
        """Return new filters of the states but images, and of rewards, if asked for."""
        states = _widths(self._own.inputs) if self._own.filter_states else None
        return Filters(states, self._own.filter_rewards)

    def action_bounds(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the bounds of the configuration, infinite where there is no bound."""
        low, high = self._own.bounds
        return None if np.isinf(low).all() and np.isinf(high).all() else (low, high)


def _widths(shapes: Shapes) -> dict[str, int]:
    """Return how long each vector is, by name; a number is a vector of one."""
    named = shapes if isinstance(shapes, Mapping) else {UNNAMED: shapes}
    return {name: prod(shape) for name, shape in named.items() if len(shape) <= 1}

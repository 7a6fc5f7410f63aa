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
        settings = Settings.model_validate(dict(config))
        self._filtered = settings.filter_states, settings.filter_rewards
        self._bounds = settings.bounds
        count, is_free = settings.action_size, settings.sigma == "free"
        distribution = DiagonalGaussian((count,), "exp" if is_free else "softplus")
        policy = Head(POLICY, 2 * count)
        if is_free:
            policy = Head(POLICY, count, count, log(settings.initial_sigma))
        space = box("float32", (count,))
        super().__init__(config, "da3c_cont", settings, distribution, space, policy)

    def filters(self) -> Filters:
        """Return new filters of vectors among the states, and of rewards, if asked for."""
        states, rewards = self._filtered
        return Filters(_widths(self.settings.inputs) if states else None, rewards)

    def action_bounds(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the bounds of the configuration, infinite where there is no bound."""
        low, high = (np.array(bound, np.float32) for bound in self._bounds)
        return None if np.isinf(low).all() and np.isinf(high).all() else (low, high)


def _widths(shapes: Shapes) -> dict[str, int]:
    """Return how long each vector is, by name."""
    named = shapes if isinstance(shapes, Mapping) else {UNNAMED: shapes}
    return {name: prod(shape) for name, shape in named.items() if len(shape) == 1}

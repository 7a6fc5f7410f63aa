"""The configuration of an actor-critic, as the servers want it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import ConfigBase
from relaax.learning.actor_critic.networks import layers_of, network_of
from relaax.learning.actor_critic.settings import ActorCriticSettings
from relaax.learning.distributions import Distribution
from relaax.learning.filters import Filters
from relaax.learning.networks import POLICY, Head
from relaax.learning.shapes import space_of_states
from relaax.spaces import Space

FloatArray = npt.NDArray[np.float32]


class ActorCriticConfig(ConfigBase):
    """The typed settings, checked once, and what they make.

    ``algorithm`` is its name in checkpoints, and ``action_size`` says there how many actions there
    are, or numbers in an action. ``policy`` is the head that puts out what
    ``distribution`` is made of; if omitted, all of that depends on the state.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        algorithm: str,
        settings: ActorCriticSettings,
        distribution: Distribution,
        action_space: Space,
        action_size: int | list[int],
        policy: Head | None = None,
    ) -> None:
        super().__init__(config)
        self.settings = settings
        self.distribution = distribution
        self.network = network_of(settings, policy or Head(POLICY, distribution.outputs))
        self._algorithm = algorithm
        self._action_space = action_space
        self._action_size = action_size

    def filters(self) -> Filters:
        """Return new filters of states and rewards; DA3C, for instance, has none."""
        return Filters()

    def action_bounds(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the lowest and the highest actions that an environment takes; None if any."""
        return None

    def fingerprint(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on, as JSON values."""
        return {
            "algorithm": self._algorithm,
            "action_size": self._action_size,
            **layers_of(self.network),
            **self.filters().fingerprint(),
        }

    def observation_space(self) -> Space:
        """Return arrays of numbers of ``state_size``, by name if it has names; so is the mask."""
        size, mask = self.settings.state_size, self.settings.mask
        if mask is not None and isinstance(size, dict):
            size = {**size, mask.name: (mask.outputs,)}
        return space_of_states(size)

    def action_space(self) -> Space:
        """Return the space of actions."""
        return self._action_space

    def uses_gpu(self) -> bool:
        """Return whether TensorFlow sees the GPU."""
        return self.settings.gpu

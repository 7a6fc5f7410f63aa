"""The configuration of an actor-critic, as the servers want it."""

from collections.abc import Mapping
from typing import Any

from relaax.algorithm_base import ConfigBase, FloatVector
from relaax.learning.actor_critic.continuous import Actions, FloatArray
from relaax.learning.actor_critic.networks import layers_of, network_of
from relaax.learning.actor_critic.policy_settings import PolicySettings
from relaax.learning.actor_critic.settings import ActorCriticSettings
from relaax.learning.described_policy import DescribedPolicy
from relaax.learning.filters import Filters
from relaax.learning.shapes import space_of_states
from relaax.spaces import Space


class PolicyConfig(ConfigBase):
    """The typed settings of a policy and a value, checked once, and what they make.

    ``algorithm`` is its name in checkpoints.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        algorithm: str,
        settings: PolicySettings,
        actions: Actions,
    ) -> None:
        super().__init__(config)
        self.settings = settings
        self.distribution = actions.distribution
        self.network = network_of(settings, actions.head)
        self._algorithm = algorithm
        self._actions = actions

    def filters(self) -> Filters:
        """Return new filters of states and rewards; DA3C, for instance, has none."""
        return Filters()

    def action_bounds(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the lowest and the highest actions that an environment takes; None if any."""
        return self._actions.bounds

    def describe_policy(self, vector: FloatVector) -> DescribedPolicy:
        """Return what actions depend on, for parameters with the statistics of filters [size]."""
        settings, filters = self.settings, self.filters()
        own, scales = filters.separated(vector)
        filters.use(scales)
        return DescribedPolicy(
            network=self.network,
            parameters=self.network.manifest.unpack(own),
            distribution=self.distribution,
            state_size=settings.inputs,
            history_len=settings.history_len,
            action_mask=settings.mask,
            scales={name: each.scale for name, each in filters.states.items()},
            action_bounds=self.action_bounds(),
        )

    def fingerprint(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on, as JSON values."""
        return {
            "algorithm": self._algorithm,
            "action_size": self._actions.size,
            **self._actions.fingerprint,
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
        return self._actions.space

    def uses_gpu(self) -> bool:
        """Return whether TensorFlow sees the GPU."""
        return self.settings.gpu


class ActorCriticConfig(PolicyConfig):
    """The same for an algorithm whose workers learn."""

    settings: ActorCriticSettings

    def rollout_steps(self) -> int:
        """Return the length of a rollout."""
        return self.settings.episode_len if self.settings.learn else 1

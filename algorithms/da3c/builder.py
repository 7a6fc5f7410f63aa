"""Wires DA3C: the one place that reads the configuration, and hands values to parts."""

from typing import Any

from relaax.assembly import OnPolicyBuilder, WorkerParts
from relaax.learning.model import Objective
from relaax.learning.on_policy import ActorCriticConfig
from relaax.learning.on_policy.learner import Method


class Da3cBuilder(OnPolicyBuilder[ActorCriticConfig]):
    """An actor-critic of rollouts, whatever its actions are."""

    def objective(self) -> Objective:
        """Return the objective that is minimised."""
        from relaax.learning.distributions.graph_tf import graph_of

        from .method_tf import ActorCritic

        settings = self.config.settings
        return ActorCritic(
            distribution=graph_of(self.config.distribution),
            discount=settings.rewards_gamma,
            trace_decay=settings.trace_decay,
            entropy_beta=settings.entropy_beta,
            value_loss_weight=settings.value_loss_weight,
            normalize_advantages=settings.normalize_advantages,
            policy_clip=settings.policy_clip,
            vtrace=settings.vtrace,
            action_mask=settings.mask_name,
        )

    def method(self, tensors: Any) -> Method[Any]:
        """See OnPolicyBuilder."""
        from relaax.learning.gradients_tf import RolloutGradients

        settings = self.config.settings
        return RolloutGradients(
            self.network(),
            tensors,
            self.objective(),
            settings.episode_len,
            self.config.columns(),
            settings.minibatches,
            settings.rollouts_per_update,
        )

    def worker(self) -> WorkerParts:
        """See OnPolicyBuilder."""
        settings = self.config.settings
        return WorkerParts(
            settings.episode_len,
            least=settings.least_rollouts_per_update,
            most=settings.rollouts_per_update,
            waits=settings.wait_for_learning,
            learns=settings.learn,
        )

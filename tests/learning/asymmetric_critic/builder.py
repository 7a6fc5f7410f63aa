"""Wires the parts."""

from relaax.assembly import OnPolicyBuilder
from relaax.learning.on_policy.learner import WholeRollouts


class Builder(OnPolicyBuilder):
    def method(self, tensors):
        from relaax.learning.distributions.graph_tf import graph_of
        from relaax.learning.gradients_tf import RolloutGradients

        from .method_tf import ActorCritic

        config, keys = self.config, self.config.settings
        loss = ActorCritic(graph_of(config.actions), keys.rewards_gamma, keys.entropy_beta)
        gradients = RolloutGradients(
            config.network, tensors, loss, keys.episode_len, config.columns()
        )
        return WholeRollouts(gradients, most_at_once=keys.rollouts_per_update)

"""Wires the parts."""

from relaax.assembly import OnPolicyBuilder


class Builder(OnPolicyBuilder):
    def method(self, tensors):
        from relaax.learning.distributions.graph_tf import graph_of
        from relaax.learning.gradients_tf import RolloutGradients

        from .method_tf import ActorCritic

        config, keys = self.config, self.config.settings
        loss = ActorCritic(graph_of(config.actions), keys.rewards_gamma, keys.entropy_beta)
        most, columns = keys.rollouts_per_update, config.columns()
        return RolloutGradients(
            config.network, tensors, loss, keys.episode_len, columns, most_at_once=most
        )

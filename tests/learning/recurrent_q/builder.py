"""Wires the parts: stored rollouts are drawn evenly, and an action is random now and then."""

from dataclasses import replace

from relaax.algorithm_base import Input
from relaax.assembly import OffPolicyBuilder
from relaax.assembly.off_policy import TABLE
from relaax.learning.exploration.epsilon_greedy import EpsilonGreedy
from relaax.learning.steps import rollouts_of
from relaax.parameters.schedule import Linear
from relaax.replay.views import Rollouts


class Builder(OffPolicyBuilder):
    def view(self):
        return Rollouts(self.config.settings.rollout_len, self.config.settings.burn_in)

    def policy(self, seed):
        keys = self.config.settings
        epsilon = Linear(1.0, keys.epsilon, 2 * keys.learning_starts)

        def noise(policy, random):
            return EpsilonGreedy(keys.action_size, epsilon, lambda: policy.global_t, random)

        return replace(super().policy(seed), make_noise=noise)

    def learner(self, home):
        from relaax.learning.variables_tf import Variables

        from .method_tf import POLICY, TARGET, RecurrentQLearning

        config, keys = self.config, self.config.settings
        variables = Variables(config.initial(home.seed), {TARGET: POLICY}, config.learning_rates)
        values = config.network, keys.rewards_gamma, keys.target_rate
        return RecurrentQLearning(*values, variables, {TABLE: Input(keys.batch_size, rollouts_of)})

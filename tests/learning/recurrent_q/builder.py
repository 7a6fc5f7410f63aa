"""Wires the parts: stored rollouts are drawn evenly."""

from relaax.algorithm_base import Input
from relaax.assembly import OffPolicyBuilder
from relaax.assembly.off_policy import TABLE
from relaax.learning.steps import rollouts_of
from relaax.replay.views import Rollouts


class Builder(OffPolicyBuilder):
    def view(self):
        return Rollouts(self.config.settings.rollout_len, self.config.settings.burn_in)

    def learner(self, home):
        from relaax.learning.variables_tf import Variables

        from .method_tf import POLICY, TARGET, RecurrentQLearning

        config, keys = self.config, self.config.settings
        variables = Variables(config.initial(home.seed), {TARGET: POLICY}, config.learning_rates)
        values = config.network, keys.rewards_gamma, keys.target_rate
        return RecurrentQLearning(*values, variables, {TABLE: Input(keys.batch_size, rollouts_of)})

"""Wires the learner; rollouts and parameters are those of every method that is on policy."""

from relaax.algorithm_base import Input
from relaax.assembly import OnPolicyBuilder
from relaax.learning.rollouts import ROLLOUTS
from relaax.learning.steps import rollouts_of


class Builder(OnPolicyBuilder):
    def learner(self, home):
        from relaax.learning.distributions.graph_tf import graph_of
        from relaax.learning.variables_tf import Variables

        from .method_tf import NaturalGradient

        keys, initial = self.config.settings, {"policy": self.initial()}
        return NaturalGradient(
            self.network(), graph_of(self.config.actions), keys.rewards_gamma, keys.largest_kl,
            Variables(initial, {}, {"policy": keys.learning_rate}),
            {ROLLOUTS: Input(keys.rollouts_of_batch, rollouts_of, is_on_policy=True)},
        )  # fmt: skip

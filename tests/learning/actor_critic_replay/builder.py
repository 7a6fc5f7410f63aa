"""Wires the parts: the same stored steps are drawn as they come, and again evenly."""

from dataclasses import replace

from relaax.algorithm_base import Input
from relaax.assembly import OnPolicyBuilder
from relaax.learning.rollouts import ROLLOUTS
from relaax.learning.steps import rollouts_of
from relaax.replay.limiter import Limiter
from relaax.replay.specs import TableSpec

REPLAYED = "replayed"


class Builder(OnPolicyBuilder):
    def experience(self):
        parts, keys = super().experience(), self.config.settings
        replayed = TableSpec(self.view(), "uniform", Limiter(keys.replayed))
        return replace(parts, tables={**parts.tables, REPLAYED: replayed})

    def learner(self, home):
        from relaax.learning.variables_tf import Variables

        from .method_tf import POLICY, ActorCriticReplay

        keys, initial = self.config.settings, {POLICY: self.initial()}
        fresh = Input(keys.fresh, rollouts_of, is_on_policy=True)
        return ActorCriticReplay(
            self.network(), keys.rewards_gamma, keys.entropy_beta, keys.largest_weight,
            Variables(initial, {}, {POLICY: keys.learning_rate}),
            {ROLLOUTS: fresh, REPLAYED: Input(keys.replayed, rollouts_of)},
        )  # fmt: skip

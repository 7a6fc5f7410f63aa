"""Wires the parts: each environment plays with a candidate, and whole episodes are scored."""

from dataclasses import replace

from relaax.assembly import ExperienceParts, MethodBuilder, ParameterParts
from relaax.learning.networks import initial_parameters
from relaax.replay.limiter import Limiter
from relaax.replay.specs import TableSpec
from relaax.replay.views import Episodes

from .method import EvolutionStrategy, name_of

TABLE = "episodes"


class Builder(MethodBuilder):
    def policy(self, seed):
        count = self.config.settings.candidates

        def candidate(seat):
            return name_of((seat.place + seat.episode) % count)

        return replace(super().policy(seed), policy_of=candidate)

    def experience(self):
        config, keys = self.config, self.config.settings
        table = TableSpec(Episodes(keys.longest), "fifo", Limiter(), max_times_sampled=1)
        columns, capacity = config.columns(), 4 * keys.candidates * keys.longest
        tables = {TABLE: table}
        return ExperienceParts(columns, columns, tables, capacity, {}, is_on_policy=False)

    def parameters(self):
        keys, manifest = self.config.settings, self.network().manifest
        initial = initial_parameters(manifest, "orthogonal", keys.seed)
        return ParameterParts(initial, {"algorithm": "population"}, keys.max_global_step)

    def learner(self, home):
        return EvolutionStrategy(TABLE, self.parameters().initial, self.config.settings, home.seed)

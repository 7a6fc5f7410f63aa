"""Wires the cross-entropy method: the one place that reads the configuration."""

from relaax.algorithm_base import Learner
from relaax.assembly import PopulationBuilder
from relaax.assembly.parts import Home
from relaax.assembly.population import TABLE

from .config import Config
from .method import CrossEntropyMethod, candidate_of


class CemBuilder(PopulationBuilder[Config]):
    """The cross-entropy method, of discrete or continuous actions."""

    candidate_of = staticmethod(candidate_of)

    def learner(self, home: Home) -> Learner:
        """See MethodBuilder."""
        keys = self.config.settings
        return CrossEntropyMethod(
            TABLE,
            self.config.initial(),
            keys.candidates,
            keys.episodes,
            self.config.imprint(),
            keys.elites,
            keys.initial_std,
            keys.extra_std,
            keys.std_decay_generations,
            int(home.random.integers(2**63)) if keys.seed is None else keys.seed,
        )

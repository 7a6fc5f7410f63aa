"""Wires evolution strategies: the one place that reads the configuration."""

from relaax.algorithm_base import Learner
from relaax.assembly import PopulationBuilder
from relaax.assembly.parts import Home
from relaax.assembly.population import TABLE
from relaax.parameters.optimizers import Adam, AdamSettings

from .config import Config
from .method import EvolutionStrategy, candidate_of


class EsBuilder(PopulationBuilder[Config]):
    """Evolution strategies of discrete or continuous actions."""

    candidate_of = staticmethod(candidate_of)

    def learner(self, home: Home) -> Learner:
        """See MethodBuilder."""
        keys, mean = self.config.settings, self.config.initial()
        return EvolutionStrategy(
            TABLE,
            mean,
            keys.candidates,
            keys.episodes,
            self.config.imprint(),
            keys.sigma,
            Adam(mean.size, AdamSettings(weight_decay=keys.weight_decay)),
            keys.learning_rate,
            int(home.random.integers(2**63)) if keys.seed is None else keys.seed,
        )

"""Evolution strategies: the mean of a population goes up the gradient that returns estimate.

Salimans et al. 2017, "Evolution strategies as a scalable alternative to reinforcement learning"
(https://arxiv.org/abs/1703.03864), algorithm 2: noise is drawn by its seed where it is needed, so
that the mean alone goes to workers, and returns alone come back. The seed is the stamp that the
mean is published with. Candidates are mirrored, and returns are ranks (section 2.1).
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector
from relaax.learning.population import Imprint, PopulationLearner, noise_of, place_of
from relaax.learning.population.learner import centred_ranks
from relaax.parameters.optimizers import Adam

Array = npt.NDArray[np.float32]


def candidate_of(name: str, vector: FloatVector, imprint: Imprint) -> FloatVector:
    """Return a candidate's parameters [size]: those at an odd place mirror the one before.

    ``vector`` is the mean as it was published, with its stamp and ``sigma`` behind it.
    """
    mean, sigma = vector[: imprint.stamp.start], vector[imprint.own]
    pair, is_mirrored = divmod(place_of(name), 2)
    noise = noise_of(vector[imprint.stamp], pair, mean.size)
    return mean - sigma * noise if is_mirrored else mean + sigma * noise


class EvolutionStrategy(PopulationLearner):
    """Publishes the mean of a population, which workers make the candidates of."""

    def __init__(
        self,
        table: str,
        mean: FloatVector,
        count: int,
        episodes: int,
        imprint: Imprint,
        sigma: float,
        adam: Adam,
        learning_rate: float,
        seed: int,
    ) -> None:
        super().__init__(table, count, episodes, imprint)
        self._mean, self._count = mean.copy(), count
        self._sigma, self._adam, self._learning_rate = sigma, adam, learning_rate
        self._seed = seed
        self._begin()

    def improve(self, scores: Array) -> Mapping[str, float]:
        """See PopulationLearner: one step of Adam along ``sum of ranks * noise / (n sigma)``."""
        size, ranks = self._mean.size, centred_ranks(scores)
        gradient = np.zeros(size, np.float32)
        for pair, (one, mirrored) in enumerate(ranks.reshape(-1, 2)):
            gradient += (one - mirrored) * noise_of(self.stamp, pair, size)
        gradient /= np.float32(self._count * self._sigma)
        self._adam.apply(self._mean, -gradient, self._learning_rate)
        self._begin()
        return {
            "gradient norm": float(np.linalg.norm(gradient)),
            "size of the mean": float(np.linalg.norm(self._mean)),
        }

    def state(self) -> Mapping[str, npt.NDArray[np.generic]]:
        """See Learner."""
        generation = np.array([self.generation])
        return {"mean": self._mean.copy(), "generation": generation, **self._adam.slots()}

    def restore(self, state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """See Learner."""
        self._mean[:] = state["mean"]
        self.generation = int(state["generation"][0])
        for name, slot in self._adam.slots().items():
            slot[:] = state[name]
        self._begin()

    def _begin(self) -> None:
        """Go on with candidates around the mean as it is now."""
        self.begin(self._mean, np.array([self._sigma], np.float32), str(self._seed))

"""The cross-entropy method: candidates are drawn like the best of those before.

De Boer et al. 2005, "A tutorial on the cross-entropy method", section 5: independent normal
distributions of the parameters, fitted to the elites. The noise beside their deviation, which
falls to 0, keeps the search from standing still (Szita and Lorincz 2006, "Learning Tetris using the
noisy cross-entropy method").
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector
from relaax.learning.population import Imprint, PopulationLearner, noise_of, place_of

Array = npt.NDArray[np.float32]


def candidate_of(name: str, vector: FloatVector, imprint: Imprint) -> FloatVector:
    """Return a candidate's parameters [size], drawn by the mean and deviations in ``vector``."""
    mean, std = vector[: imprint.stamp.start], vector[imprint.own]
    return mean + std * noise_of(vector[imprint.stamp], place_of(name), mean.size)


class CrossEntropyMethod(PopulationLearner):
    """Publishes the mean, with the deviations by which workers draw the candidates around it."""

    def __init__(
        self,
        table: str,
        mean: FloatVector,
        count: int,
        episodes: int,
        imprint: Imprint,
        elites: int,
        initial_std: float,
        extra_std: float,
        decay_generations: int,
        seed: int,
    ) -> None:
        super().__init__(table, count, episodes, imprint)
        self._mean, self._count, self._elites = mean, count, elites
        self._std = np.full(mean.size, initial_std, np.float32)
        self._extra_std, self._decay_generations = extra_std, decay_generations
        self._seed = seed
        self._draw()

    def improve(self, scores: Array) -> Mapping[str, float]:
        """See PopulationLearner: fit the distribution to the elites, and draw anew."""
        best, size = np.argsort(-scores, kind="stable")[: self._elites], self._mean.size
        noise = np.stack([noise_of(self.stamp, int(place), size) for place in best])
        elites = self._mean + self._drawn_std * noise
        self._mean, self._std = elites.mean(axis=0), elites.std(axis=0)
        self._draw()
        return {"elites' score": float(scores[best].mean()), "std": float(self._std.mean())}

    def state(self) -> Mapping[str, npt.NDArray[np.generic]]:
        """See Learner."""
        generation = np.array([self.generation])
        return {"mean": self._mean, "std": self._std, "generation": generation}

    def restore(self, state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """See Learner."""
        self._mean = state["mean"].astype(np.float32)
        self._std = state["std"].astype(np.float32)
        self.generation = int(state["generation"][0])
        self._draw()

    def _draw(self) -> None:
        """Let new candidates be drawn."""
        left = max(0.0, 1.0 - self.generation / self._decay_generations)
        self._drawn_std = np.sqrt(np.square(self._std) + np.float32(self._extra_std**2 * left))
        self.begin(self._mean, self._drawn_std, str(self._seed))

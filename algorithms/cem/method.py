"""The cross-entropy method: candidates are drawn like the best of those before.

De Boer et al. 2005, "A tutorial on the cross-entropy method", section 5: independent normal
distributions of the parameters, fitted to the elites. The noise beside their deviation, which
falls to 0, keeps the search from standing still (Szita and Lorincz 2006, "Learning Tetris using the
noisy cross-entropy method").
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import DEFAULT, FloatVector, Version
from relaax.learning.population import Imprint, PopulationLearner, names_of

Array = npt.NDArray[np.float32]


class CrossEntropyMethod(PopulationLearner):
    """Publishes each candidate by its name, and the mean of them as the policy to evaluate."""

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
        best = np.argsort(-scores, kind="stable")[: self._elites]
        elites = self._candidates[best]
        self._mean, self._std = elites.mean(axis=0), elites.std(axis=0)
        self._draw()
        return {"elites' score": float(scores[best].mean()), "std": float(self._std.mean())}

    def values(self) -> Mapping[str, FloatVector]:
        """Return the policies that are not published yet."""
        return dict(self._new)

    def publish_again(self) -> None:
        """See PopulationLearner: the candidates are the same."""
        names = names_of(self._count)
        new = {DEFAULT: self._mean, **dict(zip(names, self._candidates, strict=True))}
        self._new = {name: self.stamped(vector) for name, vector in new.items()}

    def published(self, policy: str, version: Version) -> None:
        """See Learner."""
        super().published(policy, version)
        del self._new[policy]

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
        """Draw new candidates [N, size]."""
        left = max(0.0, 1.0 - self.generation / self._decay_generations)
        std = np.sqrt(np.square(self._std) + np.float32(self._extra_std**2 * left))
        random = np.random.default_rng([self._seed, self.generation])  # others after a restart
        noise = random.standard_normal((self._count, self._mean.size), np.float32)
        self._candidates = self._mean + std * noise
        self.begin(self._candidates)
        self.publish_again()

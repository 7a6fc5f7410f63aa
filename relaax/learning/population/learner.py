"""Gathers the returns of a generation of candidates, and asks for the next generation."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import DEFAULT, FloatVector, Input, Learner, Step, Version
from relaax.learning.population.imprint import Imprint, stamp_of
from relaax.learning.rollouts.labels import POLICY_NAME, POLICY_STAMP, names_in
from relaax.learning.steps import EpisodeBatch, episodes_of

FloatArray = npt.NDArray[np.float32]

_CANDIDATE = "candidate-"

#: After so many seconds without an episode of the newest candidates these are published again.
AGAIN_S = 60.0


def names_of(count: int) -> list[str]:
    """Return the names of so many candidates, under which they play."""
    return [f"{_CANDIDATE}{place}" for place in range(count)]


def place_of(name: str) -> int:
    """Return the place of the candidate of this name in its generation."""
    return int(name.removeprefix(_CANDIDATE))


class PopulationLearner(Learner):
    """Scores ``count`` candidates, each by the mean of its first ``episodes`` returns.

    Derive from it. ``improve`` is given the scores of a generation, and makes the next one. Call
    ``begin`` with each generation, which is published then, for workers to make the candidates of:
    episodes with another stamp, as of the generation before, are passed over. If they come alone
    for ``AGAIN_S`` seconds, the parameter server may have gone on from a checkpoint: the same is
    published again.
    """

    def __init__(self, table: str, count: int, episodes: int, imprint: Imprint) -> None:
        self.inputs = {table: Input(1, episodes_of, is_on_policy=True)}
        #: Generations so far.
        self.generation = 0
        self._names, self._episodes, self._imprint = names_of(count), episodes, imprint
        #: Of this generation.
        self.stamp: FloatVector = np.zeros(0, np.float32)
        self._vector, self._is_published = self.stamp, True
        self._returns: dict[str, list[float]] = {}
        #: When an episode of this generation came, or it was published.
        self._heard_at = monotonic()

    @abstractmethod
    def improve(self, scores: FloatArray) -> Mapping[str, float]:
        """Make the next generation, by the scores [N] of this one; return numbers to be shown."""

    def begin(self, mean: FloatVector, own: FloatVector, *content: npt.ArrayLike) -> None:
        """Publish a generation, and wait for its episodes.

        Its candidates are made of ``mean`` [size], of the ``own`` numbers of the imprint, and of
        noise, which the stamp decides about: other ``content`` has other noise.
        """
        self.stamp = stamp_of(self.generation, mean, own, *content)
        self._vector = np.concatenate([mean, self._imprint.numbers(self.stamp, own)])
        self._is_published = False
        self._returns = {name: [] for name in self._names}
        self._heard_at = monotonic()

    def values(self) -> Mapping[str, FloatVector]:
        """Return the mean with the numbers behind it, unless it has been published."""
        return {} if self._is_published else {DEFAULT: self._vector}

    def published(self, policy: str, version: Version) -> None:
        """See Learner: its episodes may come from now on."""
        self._is_published = True
        self._heard_at = monotonic()

    def steps(self, batches: Mapping[str, EpisodeBatch]) -> Iterator[Step]:
        """See Learner: one for a whole generation, and nothing is updated by an episode alone."""
        (batch,) = batches.values()
        for place in np.flatnonzero(batch.is_complete).tolist():
            self._score(batch, place)
        if min(map(len, self._returns.values())) < self._episodes:
            yield Step(updates=0)
            return
        scores = np.array([np.mean(found) for found in self._returns.values()], np.float32)
        self.generation += 1
        terms = self.improve(scores)
        yield Step(
            terms={"mean score": float(scores.mean()), "best score": float(scores.max()), **terms}
        )

    def _score(self, batch: EpisodeBatch, place: int) -> None:
        """Count an episode that a candidate of this generation has played."""
        returns = self._returns.get(str(names_in(batch.extras[POLICY_NAME][place])))
        if returns is None or (batch.extras[POLICY_STAMP][place] != self.stamp).any():
            self._publish_where_nothing_is_heard()
            return
        self._heard_at = monotonic()
        if len(returns) < self._episodes:
            returns.append(float(batch.returns[place]))

    def _publish_where_nothing_is_heard(self) -> None:
        now = monotonic()
        if now - self._heard_at > AGAIN_S:
            self._heard_at = now
            self._is_published = False


def centred_ranks(scores: Sequence[float] | FloatArray) -> FloatArray:
    """Return ranks [N] from -1/2, of the lowest score, to 1/2 (Salimans et al. 2017, section 2.1).

    Equal scores have the mean of their ranks.
    """
    values = np.asarray(scores, np.float64)
    below = (values[:, np.newaxis] > values).sum(axis=1)
    equal = (values[:, np.newaxis] == values).sum(axis=1) - 1
    ranks: FloatArray = (below + equal / 2).astype(np.float32)
    return ranks / np.float32(max(1, len(values) - 1)) - np.float32(0.5)

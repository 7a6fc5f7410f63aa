"""Gathers the returns of a generation of candidates, and asks for the next generation."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import Input, Learner, Step
from relaax.learning.rollouts import RolloutBatch
from relaax.learning.rollouts.labels import POLICY_NAME, POLICY_VERSION, names_in
from relaax.learning.steps import rollouts_of
from relaax.replay.table import Sample

FloatArray = npt.NDArray[np.float32]

_CANDIDATE = "candidate-"


def names_of(count: int) -> list[str]:
    """Return the names of so many candidates, under which they play."""
    return [f"{_CANDIDATE}{place}" for place in range(count)]


def place_of(name: str) -> int:
    """Return the place of the candidate of this name in its generation."""
    return int(name.removeprefix(_CANDIDATE))


def episodes_of(sample: Sample) -> RolloutBatch:
    """Return episodes, read by a view ``Episodes``, as rollouts of which nothing goes on."""
    columns = {**sample.columns, "begins": np.zeros_like(sample.columns["valid"])}
    return rollouts_of(replace(sample, columns=columns))


class PopulationLearner(Learner):
    """Scores ``count`` candidates, each by the mean of its first ``episodes`` returns.

    Derive from it. ``improve`` is given the scores of a generation, and makes the next one, which
    ``expect`` announces as soon as the versions are known that its steps carry. Steps of others,
    such as those of the generation before, are passed over.
    """

    def __init__(self, table: str, count: int, episodes: int) -> None:
        self.inputs = {table: Input(1, episodes_of, is_on_policy=True)}
        #: Generations so far.
        self.generation = 0
        self._names, self._episodes = names_of(count), episodes
        self._versions: dict[str, int] = {}
        self._returns: dict[str, list[float]] = {name: [] for name in self._names}

    @abstractmethod
    def improve(self, scores: FloatArray) -> Mapping[str, float]:
        """Make the next generation, by the scores [N] of this one; return numbers to be shown."""

    def expect(self, name: str, version: int) -> None:
        """Score steps that carry this name and version."""
        self._versions[name] = version

    def steps(self, batches: Mapping[str, RolloutBatch]) -> Iterator[Step]:
        """See Learner: one for a whole generation, and nothing is updated by an episode alone."""
        (batch,) = batches.values()
        for column in range(batch.valid.shape[1]):
            self._score(batch, column)
        if min(map(len, self._returns.values())) < self._episodes:
            yield Step(updates=0)
            return
        scores = np.array([np.mean(found) for found in self._returns.values()], np.float32)
        self._returns = {name: [] for name in self._names}
        self._versions.clear()
        self.generation += 1
        terms = self.improve(scores)
        yield Step(
            terms={"mean score": float(scores.mean()), "best score": float(scores.max()), **terms}
        )

    def _score(self, batch: RolloutBatch, column: int) -> None:
        """Count an episode that one candidate of this generation has played from end to end."""
        took = batch.valid[:, column] > 0
        names = set(names_in(batch.extras[POLICY_NAME][took, column]).tolist())
        versions = set(batch.extras[POLICY_VERSION][took, column].tolist())
        if len(names) != 1 or len(versions) != 1:
            return
        (name,), (version,) = names, versions
        if self._versions.get(name) == version and len(self._returns[name]) < self._episodes:
            self._returns[name].append(float(batch.rewards[took, column].sum()))


def centred_ranks(scores: Sequence[float] | FloatArray) -> FloatArray:
    """Return ranks [N] from -1/2, of the lowest score, to 1/2 (Salimans et al. 2017, section 2.1).

    Equal scores have the mean of their ranks.
    """
    values = np.asarray(scores, np.float64)
    below = (values[:, np.newaxis] > values).sum(axis=1)
    equal = (values[:, np.newaxis] == values).sum(axis=1) - 1
    ranks: FloatArray = (below + equal / 2).astype(np.float32)
    return ranks / np.float32(max(1, len(values) - 1)) - np.float32(0.5)

"""Evolution strategies (Salimans et al. 2017, https://arxiv.org/abs/1703.03864, algorithm 1)."""

import numpy as np

from relaax.algorithm_base import DEFAULT, Input, Learner, Step
from relaax.learning.rollouts.labels import POLICY_NAME, POLICY_VERSION, names_in


def name_of(candidate):
    return f"candidate-{candidate}"


class EvolutionStrategy(Learner):
    """Sets candidates by their names, and the mean that they are drawn around by default."""

    def __init__(self, table, initial, settings, seed):
        take = Input(1, prepare=lambda sample: sample.columns, is_on_policy=True)
        self.inputs = {table: take}
        self._settings, self._random = settings, np.random.default_rng(seed)
        self._mean = initial
        self._draw()

    def steps(self, batches):
        """Score an episode; draw anew when all candidates have enough scores."""
        ((columns,),) = (batches.values(),)
        took = columns["valid"][:, 0]
        name, *_ = names_in(columns[POLICY_NAME][:, 0])
        versions = columns[POLICY_VERSION][took, 0]
        if (versions == self._versions.get(name)).all():  # not of candidates before
            self._scores[name].append(columns["reward"][took, 0].sum())
        if min(map(len, self._scores.values())) < self._settings.episodes:
            yield Step(updates=0)
            return
        scores = np.array([np.mean(each) for each in self._scores.values()], np.float32)
        weights = (scores - scores.mean()) / (scores.std() + 1e-6)
        way = self._settings.deviation * weights @ self._noise / len(scores) ** 0.5
        self._mean = self._mean + self._settings.step_size * way
        self._draw()
        yield Step(terms={"score": scores.mean(), "best score": scores.max()})

    def values(self):
        """Return the policies that are not published yet."""
        return dict(self._new)

    def published(self, policy, version):
        self._versions[policy] = version.number
        del self._new[policy]

    def state(self):
        return {"mean": self._mean}

    def restore(self, state):
        self._mean = state["mean"]
        self._draw()

    def _draw(self):
        """Draw new candidates."""
        names = [name_of(number) for number in range(self._settings.candidates)]
        shape = len(names), self._mean.size
        self._noise = self._random.normal(size=shape).astype(np.float32)
        self._scores, self._versions = {name: [] for name in names}, {}
        candidates = self._mean + self._settings.deviation * self._noise
        self._new = {DEFAULT: self._mean, **dict(zip(names, candidates, strict=True))}

"""Evolution strategies (Salimans et al. 2017, https://arxiv.org/abs/1703.03864, algorithm 1)."""

import numpy as np

from relaax.algorithm_base import Input, LearnerBase, NewValues, Step
from relaax.learning.rollouts.labels import POLICY_NAME, POLICY_VERSION, names_in


def name_of(candidate):
    return f"candidate-{candidate}"


class EvolutionStrategy(LearnerBase):
    """Publishes candidates by their names, and what they are drawn around as the default policy."""

    def __init__(self, table, initial, settings, seed):
        self.inputs = {table: Input(1, prepare=lambda sample: sample.columns)}
        self._settings, self._random = settings, np.random.default_rng(seed)
        self._mean = initial

    def connected(self, parameter_server):
        self._parameters, self._generation = parameter_server, 0
        self._draw()

    def step(self, batches):
        """Score an episode; draw anew when all candidates have enough scores."""
        ((columns,),) = (batches.values(),)
        took = columns["valid"][:, 0]
        name, *_ = names_in(columns[POLICY_NAME][:, 0])
        versions = columns[POLICY_VERSION][took, 0]
        if (versions == self._versions.get(name)).all():  # not of candidates before
            self._scores[name].append(columns["reward"][took, 0].sum())
        if min(map(len, self._scores.values())) < self._settings.episodes:
            return Step(updates=0)
        scores = np.array([np.mean(each) for each in self._scores.values()], np.float32)
        weights = (scores - scores.mean()) / (scores.std() + 1e-6)
        way = self._settings.deviation * weights @ self._noise / len(scores) ** 0.5
        self._mean = self._mean + self._settings.step_size * way
        self._draw()
        return Step(terms={"score": scores.mean(), "best score": scores.max()})

    def parameters(self):
        return self._mean

    def state(self):
        return {"mean": self._mean}

    def restore(self, state):
        self._mean = state["mean"]

    def _draw(self):
        """Push new candidates."""
        self._generation += 1
        names = [name_of(number) for number in range(self._settings.candidates)]
        shape = len(names), self._mean.size
        self._noise = self._random.normal(size=shape).astype(np.float32)
        self._scores, self._versions = {name: [] for name in names}, {}
        candidates = self._mean + self._settings.deviation * self._noise
        for name, vector in zip(names, candidates, strict=True):
            values = self._parameters.push(NewValues(vector, self._generation), policy=name)
            self._versions[name] = values.version.number
